"""What lasts of a session, and of a task, and what is told of them, as JSON, the same for every replica."""

from dataclasses import fields
from typing import Any

from pydantic_core import from_json, to_json

from ...contracts import Post, SessionRecord, TaskRecord
from ...protocol.identity import Principal
from ...protocol.session.events import Change
from ...protocol.session.handshake import read_snapshot, write_snapshot

_OF_TASK = tuple(field.name for field in fields(TaskRecord))


def write_session(record: SessionRecord) -> bytes:
    """A session. Of its principal this says who it is, not whether the token was revoked."""
    said = {
        "principal": _principal(record.principal),
        "client": record.client,
        "idle_seconds": record.idle_seconds,
        "snapshot": write_snapshot(record.snapshot),
    }
    return to_json(said)


def read_session(id: str, data: bytes) -> SessionRecord:
    """The session of that id. Raises ValueError or KeyError where `data` is none."""
    said: dict[str, Any] = from_json(data)
    principal = _read_principal(said["principal"])
    snapshot = read_snapshot(said["snapshot"], principal)
    return SessionRecord(id, principal, said["client"], said["idle_seconds"], snapshot)


def write_post(post: Post) -> bytes:
    """What there is to know of a POST besides its body."""
    return to_json([_principal(post.principal), post.version])


def read_post(body: bytes, data: bytes) -> Post:
    """A POST of that body. Raises ValueError or TypeError where `data` is of none."""
    principal, version = from_json(data)
    return Post(body, _read_principal(principal), version)


def _principal(principal: Principal | None) -> dict[str, Any] | None:
    if principal is None:
        return None
    scopes = None if principal.scopes is None else sorted(principal.scopes)
    return {
        "key": principal.key,
        "name": principal.name,
        "scopes": scopes,
        "client": principal.client,
        "expires": principal.expires,
    }


def _read_principal(said: dict[str, Any] | None) -> Principal | None:
    if said is None:
        return None
    scopes = said.pop("scopes")
    return Principal(scopes=None if scopes is None else frozenset(scopes), **said)


def write_task(task: TaskRecord) -> bytes:
    """A task."""
    said = {name: getattr(task, name) for name in _OF_TASK}
    return to_json({**said, "scopes": sorted(task.scopes)})


def read_task(data: bytes) -> TaskRecord:
    """A task. Raises ValueError or TypeError where `data` is none."""
    said: dict[str, Any] = from_json(data)
    return TaskRecord(**{**said, "scopes": frozenset(said["scopes"])})


def write_change(change: Change) -> bytes:
    """A change."""
    return to_json([change.what, change.uri, change.part])


def read_change(data: bytes) -> Change:
    """A change. Raises ValueError or TypeError where `data` is none."""
    return Change(*from_json(data))
