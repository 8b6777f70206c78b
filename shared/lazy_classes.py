"""Cheaper definitions of classes. A program defines all of them when it starts, but uses few.

`dataclass` compiles the methods of a class from text, and a server on stdio has 150 such classes. Only type checkers
read the 100 `TypedDict`s of pydantic. Together these definitions took 20 % of the time to start a server.
"""

import dataclasses
import typing
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import MISSING
from functools import partial
from threading import RLock
from typing import Any

import typing_extensions

_dataclass = dataclasses.dataclass
_lock = RLock()
_BEFORE_COMPILING = 20
"""Number of instances of a class that are created before its constructor is compiled. Compiling takes about as long
as setting the fields of so many. A start creates fewer instances of most classes."""


def add_constructor(cls: Any) -> None:
    """Give a data class that was defined without a constructor one that is only compiled if it is called often."""
    left = _BEFORE_COMPILING

    def __init__(self: Any, /, *values: Any, **named: Any) -> None:  # noqa: N807
        nonlocal left
        left -= 1
        if left < 0 or not _set_fields(cls, self, values, named):
            # `dataclass` compiles the same constructor for a subclass without fields of its own.
            subclass: Any = type(cls.__name__, (cls,), {"__doc__": "none", "__qualname__": cls.__qualname__})
            cls.__init__ = _dataclass(subclass, frozen=cls.__dataclass_params__.frozen, eq=False, repr=False).__init__
            cls.__init__(self, *values, **named)

    cls.__init__ = __init__


def _set_fields(cls: Any, instance: Any, values: tuple[Any, ...], named: dict[str, Any]) -> bool:
    """Set the fields of a new instance of `cls`. Return False if the arguments don't fit."""
    fields = dataclasses.fields(cls)
    names = [field.name for field in fields if field.init and not field.kw_only]
    has_others = len(fields) < len(cls.__dataclass_fields__)  # such as arguments for `__post_init__`
    if has_others or len(values) > len(names) or not named.keys().isdisjoint(names[: len(values)]):
        return False
    given = {**named, **dict(zip(names, values, strict=False))}
    for field in fields:
        if field.init and field.name in given:
            value = given.pop(field.name)
        elif field.default is not MISSING:
            value = field.default
        elif field.default_factory is not MISSING:
            value = field.default_factory()
        else:
            return False
        object.__setattr__(instance, field.name, value)
    if given:
        return False
    if hasattr(instance, "__post_init__"):
        instance.__post_init__()
    return True


@contextmanager
def lazy_dataclasses() -> Iterator[None]:
    """Make the data classes of modules that are imported in the block lazy: their methods are compiled when the first
    instance is created, or when their fields are read.

    These classes have no slots, which can't be added to an existing class, and share the methods that are rarely
    called. The fields of frozen ones can be set, since the methods that prevent it would be compiled for each class.
    """
    with _replaced(dataclasses, "dataclass", _lazy_dataclass):
        yield


@contextmanager
def plain_typed_dicts() -> Iterator[None]:
    """Make the `TypedDict`s of modules that are imported in the block plain functions that create a `dict`."""
    plain = _PlainTypedDict({})
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


class _Plain:
    """A `TypedDict` that is defined cheaply: it is called to create a dict, and can be a base of others."""

    def __init__(self, annotations: Any) -> None:
        self.__annotations__ = annotations

    def __call__(self, *items: Any, **more_items: Any) -> dict[str, Any]:
        return dict(*items, **more_items)

    def __mro_entries__(self, _bases: tuple[Any, ...]) -> tuple[type, ...]:
        return (_BASE,)

    def __or__(self, other: Any) -> Any:
        return Any

    __ror__ = __or__


class _PlainTypedDict(_Plain):
    """A replacement for `TypedDict`, which can be a base of a class, or called as a function."""

    def __call__(self, _name: str, keys: Any, **_: Any) -> Any:
        return _Plain(keys)


class _PlainMeta(type):
    """Creates no class for a definition."""

    def __new__(mcs, _name: str, _bases: tuple[type, ...], namespace: dict[str, Any], **_: Any) -> Any:
        # pydantic reads the names of its settings in the annotations.
        return _Plain(namespace.get("__annotations__", {}))


_BASE = type.__new__(_PlainMeta, "TypedDict", (dict,), {})


def _lazy_dataclass(cls: Any = None, /, **options: Any) -> Any:
    if cls is None:
        return partial(_lazy_dataclass, **options)
    is_derived = dataclasses.is_dataclass(cls) or cls.__new__ is not object.__new__
    if is_derived or options.get("order") or options.get("unsafe_hash"):
        return _dataclass(cls, **options)
    fields = _Fields(cls, {name: value for name, value in options.items() if name not in ("slots", "weakref_slot")})

    # This `__new__` is never removed: `object.__new__` refuses arguments if the class has ever had one of its own.
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
        """Compile the methods of the class, unless this was done before. Other threads wait until it is done."""
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
    has_constructor = "__init__" in vars(cls) or not options.pop("init", True)
    _dataclass(cls, init=False, eq=False, repr=False, **options)
    if not has_constructor:
        add_constructor(cls)
    cls.__dataclass_params__.frozen = frozen  # a subclass must be frozen too


class _Methods:
    """The methods that lazy data classes share. Compiling them for each would take 2.5 % of the start."""

    def __eq__(self, other: object) -> bool:
        return _compared(self) == _compared(other) if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash(_compared(self))

    def __repr__(self: Any) -> str:
        shown = [field.name for field in dataclasses.fields(self) if field.repr]
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


def _compared(instance: Any) -> tuple[Any, ...]:
    return tuple([getattr(instance, field.name) for field in dataclasses.fields(instance) if field.compare])
