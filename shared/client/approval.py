"""The host's approval, which is requested before a tool is called, a resource is read, a prompt is fetched, or an
input request of a server is answered.

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
"""The first three are requests to a server; the others are input requests from the server."""

_ACTS: dict[str, tuple[ActKind, str | None, str | None]] = {
    "tools/call": ("call", "name", "arguments"),
    "resources/read": ("read", "uri", None),
    "prompts/get": ("prompt", "name", "arguments"),
    "sampling/createMessage": ("sample", None, None),
    "elicitation/create": ("elicit", None, None),
    "roots/list": ("roots", None, None),
}
"""For each method: the kind of the act, and the params that contain its name and its arguments; None if there is no
such param."""


class Denied(McpError):
    """Raised by the host if it does not allow an act. For an input request, the server receives its text."""


@dataclass(frozen=True, slots=True)
class Act:
    """Something that is about to happen between the host and one server."""

    server: str
    """The name of the server: in a `ClientGroup` its name there, otherwise the name that it reports."""
    kind: ActKind
    name: str
    """The name of the tool or prompt on the server, or the URI to read; for an input request, its method."""
    arguments: Mapping[str, Any]
    """The arguments of the tool or prompt; for an input request, all of its params. Changes have no effect."""


Permit = Callable[[Act], Awaitable[None]]
"""Returns if the act may happen, and raises `Denied` if not. Any other exception is raised to the caller of the
request; for an input request it ends the client, like an exception in any handler."""


def act_of(server: str, method: str, params: Mapping[str, Any]) -> Act | None:
    """Return the act that a request to or from `server` represents; None if the request needs no approval."""
    if method not in _ACTS:
        return None
    kind, name, arguments = _ACTS[method]
    if name is None:
        return Act(server, kind, method, deepcopy(dict(params)))
    values = params.get(arguments) if arguments is not None else None
    return Act(server, kind, str(params.get(name, "")), deepcopy(dict(values or {})))


def permit_as(server: str, *permits: Permit | None) -> Permit | None:
    """Return a function that calls all of `permits` in order, for acts in which the server is called `server`, its
    name in a group; None if there are no permits."""
    present = [permit for permit in permits if permit is not None]

    async def permit_all(act: Act) -> None:
        for permit in present:
            await permit(replace(act, server=server))

    return permit_all if present else None
