"""The current state of a listener for operators: connections, calls and queues.

It contains no arguments, no URIs and no tokens, and session ids only as digests. A principal without the operators'
scope sees only its own entries.
"""

import time
from asyncio import get_running_loop
from collections.abc import Callable, Collection, Iterable
from itertools import islice
from typing import Any, TypeVar

from ....auth.policy import OPERATOR, grants
from ....extensions.tasks.runner import Tasks
from ....protocol.identity import Peer, Principal
from ....protocol.session.events import Call
from ....protocol.types.tasks import TASKS
from ....server.dispatch.changes import MAX_SUBSCRIPTIONS
from ....server.dispatch.connection import Connection
from ..streamable.session import HttpSession
from .access_log import session_digest
from .mount import Mount

MAX_ENTRIES = 1_000
"""The maximum number of entries in each list; the rest are counted."""
_MAX_NAME_LENGTH = 200
"""The maximum length of a client's name or version, and of other names, in characters."""

Entry = TypeVar("Entry")


def state_of(mounts: Iterable[Mount], principal: Principal | None) -> dict[str, Any]:
    """Return the state of these servers that `principal` may see, as JSON. Times are in seconds."""
    return {"time": round(time.time(), 3), "servers": {mount.name: _server(mount, principal) for mount in mounts}}


def _server(mount: Mount, principal: Principal | None) -> dict[str, Any]:
    running, endpoint = mount.running, mount.endpoint
    status: dict[str, Any] = {"status": mount.readiness.phase.value}
    if running is None:
        return status
    sessions = {session.connection: session for session in endpoint.http_sessions}
    connections = [
        connection
        for part in running.parts.all
        for connection in part.changes.listeners
        if isinstance(connection, Connection)
    ]
    calls = [call for part in running.parts.all for call in part.calls]
    accounts = {} if endpoint.quotas is None else dict(endpoint.quotas.pending_calls)
    if principal is not None and not (principal.scopes is None or grants(principal.scopes, [OPERATOR])):
        connections = [
            connection for connection in connections if _belongs_to(connection.session.principal, principal)
        ]
        calls = [call for call in calls if _belongs_to(call.peer.principal, principal)]
        accounts = {name: count for name, count in accounts.items() if name == principal.key}
    tasks = [part.opened[TASKS] for part in running.parts.all if isinstance(part.opened.get(TASKS), Tasks)]
    subscriptions = sum(part.changes.subscribed_resources for part in running.parts.all)
    replica = running.replication.replica
    return {
        **status,
        # The number of this replica, and why the others can't be reached.
        **({} if replica is None else {"replica": {"number": replica.number, "reason": replica.disconnect_reason}}),
        "connections": _limit_list(connections, lambda connection: _connection(connection, sessions.get(connection))),
        "calls": _limit_list(calls, lambda call: _call(call, sessions)),
        "waiting": {
            "calls": sum(len(connection.queue or ()) for connection in connections),
            "messages": sum(len(connection.session.waiting) for connection in connections),
            "turns": sum(part.calls.turns.waiting for part in running.parts.all),
            "brief_turns": sum(part.calls.brief_turns.waiting for part in running.parts.all),
        },
        "clients": _limit_list(accounts.items(), lambda item: {"client": item[0], "calls": item[1]}),
        "limits": {
            "sessions": {"used": mount.endpoint.sessions, "of": mount.endpoint.max_sessions},
            "tasks": {"used": sum(len(part.local_tasks) for part in tasks), "of": running.server.task_limits.total},
            "subscriptions": {"used": subscriptions, "of": MAX_SUBSCRIPTIONS},
        },
    }


def _belongs_to(owner: Principal | None, principal: Principal) -> bool:
    return owner is not None and owner.key == principal.key


def _limit_list(entries: Collection[Entry], describe: Callable[[Entry], dict[str, Any]]) -> dict[str, Any]:
    shown = [describe(entry) for entry in islice(entries, MAX_ENTRIES)]
    return {"shown": shown, "more": len(entries) - len(shown)}


def _connection(connection: Connection, session: HttpSession | None) -> dict[str, Any]:
    session_fields = {}
    if session is not None:
        session_fields = {
            "session": session_digest(session.id),
            "idle_seconds": round(session.idle_seconds, 3),
            "streams": session.open_streams,
        }
    return {
        **session_fields,
        **_describe_client(connection.session.peer),
        "principal": None if connection.session.principal is None else connection.session.principal.key,
        "address": connection.client.rpartition("@")[2],
        "calls": connection.running,
        "waiting_calls": len(connection.queue or ()),
        "waiting_messages": len(connection.session.waiting),
        "listen_streams": connection.streams,
        "subscriptions": connection.session.subscription_count,
    }


def _call(call: Call, sessions: dict[Connection, HttpSession]) -> dict[str, Any]:
    session = None if call.link is None else sessions.get(call.link)
    name = getattr(call.params, "name", None) or getattr(call.task, "tool", None)
    return {
        "method": call.method.name,
        **({"name": name[:_MAX_NAME_LENGTH]} if isinstance(name, str) else {}),
        **({} if session is None else {"session": session_digest(session.id)}),
        **_describe_client(call.peer),
        "principal": None if call.peer.principal is None else call.peer.principal.key,
        "seconds": 0.0 if call.began is None else round(get_running_loop().time() - call.began, 3),
        # A call that became a task no longer belongs to a connection.
        "task": call.link is None,
    }


def _describe_client(peer: Peer | None) -> dict[str, Any]:
    """Return the client's description of itself."""
    if peer is None:
        return {}
    description = peer.info or {}
    info = {name: str(description[name])[:_MAX_NAME_LENGTH] for name in ("name", "version") if name in description}
    return {"protocol": peer.version_date, **({"client": info} if info else {})}
