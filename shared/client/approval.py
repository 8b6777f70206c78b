"""What a host is asked before it happens: a call, a read, a prompt, or a question of a server's.

async def permit(act: Act) -> None:
    if act.kind == "call" and act.name == "delete_file":
        raise Denied("nothing is deleted here")
"""

from collections.abc import Awaitable, Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..errors import McpError

ActKind = Literal["call", "read", "prompt", "sample", "elicit", "roots"]
"""The first three are what we ask of a server, the others what it asks of us."""

_ACTS: dict[str, tuple[ActKind, str | None, str | None]] = {
    "tools/call": ("call", "name", "arguments"),
    "resources/read": ("read", "uri", None),
    "prompts/get": ("prompt", "name", "arguments"),
    "sampling/createMessage": ("sample", None, None),
    "elicitation/create": ("elicit", None, None),
    "roots/list": ("roots", None, None),
}
"""By method: the kind, and the params that are the name and the arguments."""


class Denied(McpError):
    """The host does not allow it. For a question, the server is told this text."""


@dataclass(frozen=True, slots=True)
class Act:
    """Something that is about to happen between the host and one server."""

    server: str
    """The name of the server: in a `ClientGroup` the one it has there, otherwise the one it gives itself."""
    kind: ActKind
    name: str
    """Of the tool or prompt, as the server calls it, or the URI that is read; for questions the method."""
    arguments: Mapping[str, Any]
    """Of the tool or prompt; for questions all params. Changing them changes nothing."""


Permit = Callable[[Act], Awaitable[None]]
"""Returns where the act may happen, and raises `Denied` where not. Any other exception goes to whoever wanted the
act; that of a question ends the client, as with every handler."""


def act_of(server: str, method: str, params: Mapping[str, Any]) -> Act | None:
    """The act that a request between the host and `server` is; None where the host is not asked."""
    if method not in _ACTS:
        return None
    kind, name, arguments = _ACTS[method]
    if name is None:
        return Act(server, kind, method, deepcopy(dict(params)))
    given = params.get(arguments) if arguments is not None else None
    return Act(server, kind, str(params.get(name, "")), deepcopy(dict(given or {})))


def permit_as(server: str, *permits: Permit | None) -> Permit | None:
    """What asks all of `permits`, one after another, with the name that `server` has in a group; None without any."""
    asked = [permit for permit in permits if permit is not None]

    async def permit_all(act: Act) -> None:
        for permit in asked:
            await permit(replace(act, server=server))

    return permit_all if asked else None
