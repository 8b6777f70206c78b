"""The JSON form of the values that replicas store in Redis or exchange: sessions, tasks, POSTs and changes."""

from dataclasses import fields
from typing import Any

from pydantic_core import from_json, to_json

from ...contracts import Post, SessionRecord, TaskRecord
from ...protocol.identity import Principal
from ...protocol.session.events import Change
from ...protocol.session.handshake import read_snapshot, write_snapshot

_TASK_FIELDS = tuple(field.name for field in fields(TaskRecord))


def write_session(record: SessionRecord) -> bytes:
    """Return the JSON of a session. It contains the principal, but not whether the token has been revoked."""
    fields_ = {
        "principal": _write_principal(record.principal),
        "client": record.client,
        "idle_seconds": record.idle_seconds,
        "snapshot": write_snapshot(record.snapshot),
    }
    return to_json(fields_)


def read_session(id: str, data: bytes) -> SessionRecord:
    """Parse `data`, the result of `write_session`, into a session with the id `id`. Raises ValueError, TypeError
    or KeyError."""
    fields_: dict[str, Any] = from_json(data)
    principal = _read_principal(fields_["principal"])
    snapshot = read_snapshot(fields_["snapshot"], principal)
    return SessionRecord(id, principal, fields_["client"], fields_["idle_seconds"], snapshot)


def write_post(post: Post) -> bytes:
    """Return the JSON of a POST, except its body."""
    return to_json([_write_principal(post.principal), post.version])


def read_post(body: bytes, data: bytes) -> Post:
    """Parse `data`, the result of `write_post`, into a POST with this body. Raises ValueError or TypeError."""
    principal, version = from_json(data)
    return Post(body, _read_principal(principal), version)


def _write_principal(principal: Principal | None) -> dict[str, Any] | None:
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


def _read_principal(fields_: dict[str, Any] | None) -> Principal | None:
    if fields_ is None:
        return None
    scopes = fields_.pop("scopes")
    return Principal(scopes=None if scopes is None else frozenset(scopes), **fields_)


def write_task(task: TaskRecord) -> bytes:
    """Return the JSON of a task."""
    fields_ = {name: getattr(task, name) for name in _TASK_FIELDS}
    return to_json({**fields_, "scopes": sorted(task.scopes)})


def read_task(data: bytes) -> TaskRecord:
    """Parse `data` into a task. Raises ValueError, TypeError or KeyError if it is invalid."""
    fields_: dict[str, Any] = from_json(data)
    return TaskRecord(**{**fields_, "scopes": frozenset(fields_["scopes"])})


def write_change(change: Change) -> bytes:
    """Return the JSON of a change."""
    return to_json([change.kind, change.uri, change.part])


def read_change(data: bytes) -> Change:
    """Parse `data` into a change. Raises ValueError or TypeError if it is invalid."""
    return Change(*from_json(data))
