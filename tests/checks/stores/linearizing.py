"""Whether what was seen of concurrent operations could have been seen had each happened at once, at a moment between
its call and its answer (Wing and Gong, 1993), given what one of them does to the state: a search with a memory."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from math import inf
from typing import Any, TypeVar

__all__ = ["UNKNOWN", "History", "Operation", "is_linearizable"]


State = TypeVar("State", bound=Hashable)


class _Unknown:
    def __repr__(self) -> str:
        return "unknown"


UNKNOWN = _Unknown()
"""What came of an operation of which nobody heard any more: it may have happened, at any time since, or not."""


@dataclass(frozen=True)
class Operation:
    """An operation of a replica, and what came of it."""

    name: str
    number: int
    arguments: tuple[Any, ...]
    called: float
    result: Any = UNKNOWN
    answered: float = inf

    def __str__(self) -> str:
        when = f"{self.called:3} to {self.answered:3}"
        return f"{when}: replica {self.number}: {self.name}{self.arguments} -> {self.result}"


@dataclass
class History:
    """What was seen of each key. All of it happens in one loop: a count does for a clock."""

    seen: dict[str, list[Operation]] = field(default_factory=dict)
    _clock: Any = field(default_factory=count)

    def now(self) -> float:
        return float(next(self._clock))

    def note(self, key: str, operation: Operation) -> None:
        self.seen.setdefault(key, []).append(operation)

    def text(self, key: str) -> str:
        return "\n".join(map(str, sorted(self.seen[key], key=lambda one: one.called)))


def is_linearizable(
    operations: Sequence[Operation], start: State, step: Callable[[State, Operation], Iterable[State]]
) -> bool:
    """Whether some order of `operations` fits them all. `step` gives the states that there may be after one of them
    that came to what it did; none where it can't have."""
    owed = sum(1 << place for place, one in enumerate(operations) if one.answered < inf)
    seen = {(0, start)}
    waiting = [(0, start)]
    while waiting:
        done, state = waiting.pop()
        if done & owed == owed:
            return True
        left = [(place, one) for place, one in enumerate(operations) if not done >> place & 1]
        first = min(one.answered for _, one in left)
        for place, one in left:
            for after in step(state, one) if one.called < first else ():
                found = done | 1 << place, after
                if found not in seen:
                    seen.add(found)
                    waiting.append(found)
    return False
