"""Records: immutable values for messages and their parts, created several times a call.

A frozen dataclass guards its fields at run time, so an instance is three times as expensive to create. A record
leaves this check to the type checker. All records also share rarely called methods: compiling them for each class
would take more time at every start than anything else in this package.
"""

from dataclasses import dataclass, field
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """Make `cls` a dataclass with slots, frozen for the type checker."""
    result = dataclass(slots=True, eq=False, repr=False)(cls)
    for name, method in _SHARED.items():
        setattr(result, name, method)
    return result


def _values(instance: Any) -> tuple[Any, ...]:
    return tuple(getattr(instance, name) for name in instance.__match_args__)


def _equal(instance: Any, other: object) -> bool:
    return _values(instance) == _values(other) if type(other) is type(instance) else NotImplemented


def _hash(instance: Any) -> int:
    return hash(_values(instance))


def _repr(instance: Any) -> str:
    values = ", ".join(f"{name}={getattr(instance, name)!r}" for name in instance.__match_args__)
    return f"{type(instance).__qualname__}({values})"


_SHARED = {"__eq__": _equal, "__hash__": _hash, "__repr__": _repr}
