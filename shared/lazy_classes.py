"""Cheaper definitions of the classes of libraries. A program defines all of them when it starts, but uses few.

`dataclass` compiles the methods of a class from text, and pydantic and anyio have 60 such classes. Only type checkers
read the 88 `TypedDict`s of `pydantic_core`. Together these definitions took 14 % of the time to start a server.
"""

import dataclasses
import typing
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from threading import RLock
from typing import Any

import typing_extensions

_dataclass = dataclasses.dataclass
_lock = RLock()


@contextmanager
def lazy_dataclasses() -> Iterator[None]:
    """Make the data classes of modules that are imported in the block lazy: their methods are compiled when the first
    instance is created, or when their fields are read.

    These classes have no slots, which can't be added to an existing class, and share the methods that are rarely
    called.
    """
    with _replaced(dataclasses, "dataclass", _lazy_dataclass):
        yield


@contextmanager
def plain_typed_dicts() -> Iterator[None]:
    """Make the `TypedDict`s of modules that are imported in the block plain subclasses of `dict`, without
    annotations."""
    plain = _PlainTypedDict()
    with _replaced(typing, "TypedDict", plain), _replaced(typing_extensions, "TypedDict", plain):
        yield


@contextmanager
def _replaced(module: object, name: str, value: object) -> Iterator[None]:
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


class _PlainDict(dict[str, Any]):
    def __init_subclass__(cls, **_: Any) -> None:
        super().__init_subclass__()


class _PlainTypedDict:
    """A replacement for `TypedDict`, which can be a base of a class, or called as a function."""

    def __mro_entries__(self, _bases: tuple[Any, ...]) -> tuple[type, ...]:
        return (_PlainDict,)

    def __call__(self, name: str, *_: Any, **__: Any) -> type:
        return type(name, (_PlainDict,), {})


def _lazy_dataclass(cls: Any = None, /, **options: Any) -> Any:
    if cls is None:
        return partial(_lazy_dataclass, **options)
    if cls.__new__ is not object.__new__ or options.get("order") or options.get("unsafe_hash"):
        return _dataclass(cls, **options)
    fields = _Fields(cls, {name: value for name, value in options.items() if name not in ("slots", "weakref_slot")})

    # It is never removed: `object.__new__` refuses arguments if the class has ever had a `__new__` of its own.
    def __new__(created: Any, /, *_: Any, **__: Any) -> Any:  # noqa: N807
        fields.complete()
        return object.__new__(created)

    cls.__new__, cls.__dataclass_fields__ = __new__, fields
    return cls


class _Fields:
    """The descriptor that is the `__dataclass_fields__` of a lazy data class until they are read."""

    def __init__(self, cls: Any, options: dict[str, Any]) -> None:
        self._cls = cls
        self._options: dict[str, Any] | None = options

    def complete(self) -> None:
        """Compile the methods of the class, unless this was done before. Other threads wait meanwhile."""
        if self._options is None:
            return
        with _lock:
            if self._options is not None:
                _complete(self._cls, **self._options)
                self._options = None

    def __get__(self, instance: object, owner: type) -> Any:
        self.complete()
        return self._cls.__dataclass_fields__


def _complete(cls: Any, *, eq: bool = True, frozen: bool = False, repr: bool = True, **options: Any) -> None:
    shared: dict[str, Any] = {"__repr__": _Methods.__repr__} if repr else {}
    if eq:
        # As in `dataclass`, instances that can change have no hash.
        shared |= {"__eq__": _Methods.__eq__, "__hash__": _Methods.__hash__ if frozen else None}
    for name, method in shared.items():
        if vars(cls).get(name) is None:  # a class with its own `__eq__` has None as its `__hash__`
            setattr(cls, name, method)
    _dataclass(cls, eq=False, frozen=frozen, repr=False, **options)


class _Methods:
    """The methods that lazy data classes share. Compiling them for each class would take 2.5 % of the time to
    start."""

    def __eq__(self, other: object) -> bool:
        return _compared(self) == _compared(other) if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash(_compared(self))

    def __repr__(self: Any) -> str:
        shown = [field.name for field in dataclasses.fields(self) if field.repr]
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


def _compared(instance: Any) -> tuple[Any, ...]:
    return tuple([getattr(instance, field.name) for field in dataclasses.fields(instance) if field.compare])
