"""Records: immutable values for messages and their parts. Every call creates several.

A frozen dataclass guards its fields at run time, which makes its creation three times as expensive. A record is
frozen only for the type checker. All records also share the methods that are rarely called, and most of their
constructors are never compiled (see `lazy_classes`): compiling these for each class would take more of the time to
start than anything else in this package.
"""

from dataclasses import FrozenInstanceError, dataclass, field
from typing import Any, TypeVar, cast, dataclass_transform

from ..lazy_classes import add_constructor

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """Return `cls` as a dataclass with slots that is frozen for the type checker. Methods that it defines itself are
    not replaced."""
    result = _with_late_constructor(cls)
    for name in ("__eq__", "__hash__"):
        if vars(result).get(name) is None:
            setattr(result, name, vars(_Methods)[name])
    return result


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen_record(cls: type[T]) -> type[T]:
    """Return `cls` as a record that is also frozen at run time."""
    result: Any = record(cls)
    for name in ("__setattr__", "__delattr__", "__reduce__"):
        setattr(result, name, vars(_Methods)[name])
    result.__dataclass_params__.frozen = True  # for the constructor
    return cast("type[T]", result)


@dataclass_transform(eq_default=False, field_specifiers=(field,))
def mutable_record(cls: type[T]) -> type[T]:
    """Return `cls` as a dataclass with slots, whose instances can change and are compared by identity."""
    return _with_late_constructor(cls)


def _with_late_constructor(cls: type[T]) -> type[T]:
    result = dataclass(init=False, slots=True, eq=False, repr=False)(cls)
    add_constructor(result)
    if "__repr__" not in vars(result):
        result.__repr__ = _Methods.__repr__  # type: ignore[method-assign, assignment]
    return result


def _values(instance: Any) -> tuple[Any, ...]:
    return tuple(getattr(instance, name) for name in instance.__match_args__)


class _Methods:
    """The methods that `record` adds to each class."""

    def __eq__(self, other: object) -> bool:
        return _values(self) == _values(other) if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash(_values(self))

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), _values(self)  # a copy can't be changed either

    def __repr__(self) -> str:
        fields: Any = type(self)
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in fields.__match_args__)
        return f"{type(self).__qualname__}({values})"
