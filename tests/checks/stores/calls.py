"""What replicas do with a session, and with a task, as operations whose results can be compared."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from shared.contracts import Replica, TaskLimits, TaskRecord
from shared.protocol.session.handshake import NEW

__all__ = ["LIMITS", "OF_SESSION", "after", "seen_of"]

LIMITS = TaskLimits()


async def _done(replica: Replica) -> None:
    """Waits until what was only told is done."""
    link: Any = getattr(replica, "link", None)
    if link is not None:
        await link.ask("look")


async def _enter(replica: Replica, key: str, ids: tuple[int, ...]) -> tuple[int, bool] | None:
    came = await replica.sessions.enter(key, None, ids)
    return None if came is None else (came[0].snapshot.roots_changed, came[1])


async def _leave(replica: Replica, key: str, ids: tuple[int, ...]) -> None:
    replica.sessions.leave(key, ids)
    await _done(replica)


async def _owner(replica: Replica, key: str, id_: int) -> int | None:
    return await replica.sessions.owner(key, id_)


async def _update(replica: Replica, key: str) -> None:
    await replica.sessions.update(key, NEW, replace(NEW, roots_changed=1))


async def _watch(replica: Replica, key: str, uri: str, is_watched: bool) -> None:
    replica.sessions.watch(key, uri, is_watched=is_watched)
    await _done(replica)


async def _adopt(replica: Replica, key: str) -> tuple[str, ...]:
    return tuple(sorted(await replica.sessions.adopt(key)))


async def _lapse(replica: Replica, key: str, busy: bool) -> bool:
    return await replica.sessions.lapse(key, busy=busy)


async def _release(replica: Replica, key: str) -> None:
    replica.sessions.release(key)
    await _done(replica)


async def _delete(replica: Replica, key: str) -> None:
    replica.sessions.delete(key)
    await _done(replica)


OF_SESSION: dict[str, Callable[..., Any]] = {
    "enter": _enter,
    "leave": _leave,
    "owner": _owner,
    "update": _update,
    "watch": _watch,
    "adopt": _adopt,
    "lapse": _lapse,
    "release": _release,
    "delete": _delete,
}


def after(task: TaskRecord, text: str, *, is_over: bool) -> TaskRecord:
    """A task that says something else, and may be over."""
    status: Any = "completed" if is_over else "working"
    return replace(task, message=text, status=status, revision=task.revision + 1)


def seen_of(task: TaskRecord | None) -> tuple[int, str, bool] | None:
    """What the model says of a task."""
    if task is None:
        return None
    text = "gone" if (task.message or "").startswith("the replica that ran it") else task.message or ""
    return task.revision, text, task.status in {"completed", "failed"}
