"""Classes that are defined cheaply behave like others from their first use on."""

import dataclasses
import typing
from threading import Barrier, Thread
from types import new_class
from typing import Any

import pytest
import typing_extensions

from shared.lazy_classes import add_constructor, lazy_dataclasses, plain_typed_dicts


def _define(**options: Any) -> Any:
    @dataclasses.dataclass(**options)
    class Thing:
        """A thing."""

        name: str
        tags: list[str] = dataclasses.field(default_factory=list, compare=False)
        size: int = 1

    return Thing


@pytest.fixture
def thing() -> Any:
    with lazy_dataclasses():
        return _define(frozen=True, slots=True)


def test_a_definition_compiles_no_method(thing: Any) -> None:
    assert not {"__init__", "__eq__", "__repr__"} & vars(thing).keys()
    assert "__init__" in vars(_define()), "the decorator is restored"


def test_the_first_instance_has_all_methods(thing: Any) -> None:
    first = thing("a", size=2)
    assert (first.name, first.tags, first.size) == ("a", [], 2)
    assert repr(first).endswith("Thing(name='a', tags=[], size=2)")
    assert {first: 1}[thing("a", ["x"], 2)] == 1
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'name'"):
        thing()
    assert dataclasses.replace(first, name="c") == thing("c", size=2) != first


def test_instances_that_can_change_have_no_hash() -> None:
    with lazy_dataclasses():
        thing = _define()
    assert thing("a") == thing("a") != "a"
    with pytest.raises(TypeError, match="unhashable"):
        hash(thing("a"))


def test_reading_the_fields_completes_a_class(thing: Any) -> None:
    assert dataclasses.is_dataclass(thing)
    assert [field.name for field in dataclasses.fields(thing)] == ["name", "tags", "size"]


def test_a_subclass_inherits_the_fields(thing: Any) -> None:
    sub: Any = dataclasses.dataclass(frozen=True)(type("Sub", (thing,), {"__annotations__": {"end": int}, "end": 0}))
    assert sub("a", end=3) == sub("a", end=3) != sub("b", end=3)
    assert type("Other", (thing,), {})("b").name == "b"


def test_a_subclass_of_a_frozen_class_is_frozen(thing: Any) -> None:
    thing("a")
    for base in (thing, _define(frozen=True)):
        with lazy_dataclasses(), pytest.raises(TypeError, match="cannot inherit non-frozen"):
            dataclasses.dataclass(type("Sub", (base,), {}))


def test_threads_that_need_a_class_at_once_all_get_it(thing: Any) -> None:
    barrier, made = Barrier(8), []

    def make() -> None:
        barrier.wait()
        made.append(thing("a"))

    threads = [Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [thing("a")] * 8


def _define_with_kinds(**options: Any) -> Any:
    @dataclasses.dataclass(**options)
    class Kinds:
        name: str
        tags: list[str] = dataclasses.field(default_factory=list)
        size: int = dataclasses.field(default=1, kw_only=True)
        area: int = dataclasses.field(default=0, init=False)

        def __post_init__(self) -> None:
            self.area = self.size**2

    return Kinds


def _outcome(cls: Any, values: tuple[Any, ...], named: dict[str, Any]) -> str:
    try:
        return repr(cls(*values, **named))
    except TypeError as error:
        return str(error)


@pytest.mark.parametrize(
    ("values", "named"),
    [
        (("a",), {}),
        (("a", ["x"]), {"size": 3}),
        ((), {"name": "a", "tags": ["x"]}),
        ((), {}),
        (("a", [], 3), {}),
        (("a",), {"name": "b"}),
        (("a",), {"other": 1}),
        (("a",), {"area": 1}),
    ],
)
def test_a_constructor_does_the_same_before_and_after_it_is_compiled(
    values: tuple[Any, ...], named: dict[str, Any]
) -> None:
    late, expected = _define_with_kinds(init=False), _outcome(_define_with_kinds(), values, named)
    add_constructor(late)
    assert [_outcome(late, values, named) for _ in range(30)] == [expected] * 30
    assert late.__init__.__code__.co_varnames[:2] == ("self", "name"), "it is compiled"


@pytest.mark.parametrize("module", [typing, typing_extensions])
def test_a_plain_typed_dict_is_a_dict(module: Any) -> None:
    real = module.TypedDict
    with plain_typed_dicts():
        choice: Any = new_class("Choice", (module.TypedDict,), {"total": False, "closed": True})
        pair: Any = module.TypedDict("Pair", {"name": str})
        longer: Any = new_class("Longer", (choice,), {}, lambda body: body.update(__annotations__={"size": int}))
        assert {typing.Union[choice, None], choice | pair, None | longer}  # noqa: UP007
    assert choice(name="a") == pair(name="a") == longer(name="a") == {"name": "a"}
    assert longer.__annotations__ == {"size": int}
    assert module.TypedDict is real
    assert not typing_extensions.is_typeddict(choice)
