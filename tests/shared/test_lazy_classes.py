"""Classes that are defined cheaply behave like others from their first use on."""

import dataclasses
import typing
from threading import Barrier, Thread
from types import new_class
from typing import Any

import pytest
import typing_extensions

from shared.lazy_classes import lazy_dataclasses, plain_typed_dicts


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
    with pytest.raises(dataclasses.FrozenInstanceError):
        first.name = "b"
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


@pytest.mark.parametrize("module", [typing, typing_extensions])
def test_a_plain_typed_dict_is_a_dict(module: Any) -> None:
    real = module.TypedDict
    with plain_typed_dicts():
        choice: Any = new_class("Choice", (module.TypedDict,), {"total": False, "closed": True})
        pair: Any = module.TypedDict("Pair", {"name": str})
    assert choice(name="a") == pair(name="a") == {"name": "a"}
    assert module.TypedDict is real
    assert not typing_extensions.is_typeddict(choice)
