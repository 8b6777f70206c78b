"""Records: immutable values for messages and their parts. Every call creates several.

A frozen dataclass guards its fields at run time, which makes its creation three times as expensive. A record is
frozen only for the type checker. All records also share the methods that are rarely called: compiling these for each
class would take more of the time to start than anything else in this package.
"""

from dataclasses import dataclass, field
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """Return `cls` as a dataclass with slots that is frozen for the type checker."""
    result = dataclass(slots=True, eq=False, repr=False)(cls)
    for name in ("__eq__", "__hash__", "__repr__"):
        setattr(result, name, vars(_Methods)[name])
    return result


def _values(instance: Any) -> tuple[Any, ...]:
    return tuple(getattr(instance, name) for name in instance.__match_args__)


class _Methods:
    """The methods that `record` adds to each class."""

    def __eq__(self, other: object) -> bool:
        return _values(self) == _values(other) if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash(_values(self))

    def __repr__(self) -> str:
        fields: Any = type(self)
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in fields.__match_args__)
        return f"{type(self).__qualname__}({values})"
