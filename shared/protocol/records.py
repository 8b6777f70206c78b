"""What a message becomes on its way: values that nobody changes, made several times a call.

A frozen dataclass guards its fields at run time, which makes each of them three times as dear to make. A record
leaves the guard to the type checker. It also shares with all others what is seldom called: methods written for each
class by itself are compiled at every start, and take more of its time than anything else in this package.
"""

from dataclasses import dataclass, field
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """Makes `cls` a dataclass with slots, frozen as far as the type checker sees."""
    made = dataclass(slots=True, eq=False, repr=False)(cls)
    for name, method in _SHARED.items():
        setattr(made, name, method)
    return made


def _values(one: Any) -> tuple[Any, ...]:
    return tuple(getattr(one, name) for name in one.__match_args__)


def _equal(one: Any, other: object) -> bool:
    return _values(one) == _values(other) if type(other) is type(one) else NotImplemented


def _hash(one: Any) -> int:
    return hash(_values(one))


def _shown(one: Any) -> str:
    values = ", ".join(f"{name}={getattr(one, name)!r}" for name in one.__match_args__)
    return f"{type(one).__qualname__}({values})"


_SHARED = {"__eq__": _equal, "__hash__": _hash, "__repr__": _shown}
