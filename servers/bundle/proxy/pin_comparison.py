"""Which tools of a server are as they were pinned, and which are withheld."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from servers.gateway.rules.names import Rules
from servers.gateway.rules.pins import Pins, digest_of
from shared.client.client import Client
from shared.client.options import ClientOptions
from shared.errors import InvalidResult

# Some servers have tools for clients alone that can do something for them.
CAPABLE = ClientOptions(
    capabilities={"sampling": {}, "elicitation": {"form": {}, "url": {}}, "roots": {}},
    reconnect=False,
    cache_bytes=0,
)
"""A client that declares all that there is, and is asked for nothing by a server that only lists its tools."""

Tool = Mapping[str, Any]


class Comparison(NamedTuple):
    """The names of the tools that clients may be shown, by how they compare with their pins; all are fine where
    nothing is pinned yet."""

    fitting: Sequence[str]
    changed: Sequence[str]
    new: Sequence[str]
    gone: Sequence[str]
    """Those that are pinned, and that there are no more."""

    @property
    def withheld(self) -> list[str]:
        """The names of those that clients are not shown."""
        return [*self.changed, *self.new]


async def list_tools(client: Client) -> list[dict[str, Any]]:
    """All tools of the server, none where it has no such list. Raises what a request does, and InvalidResult for a
    list of something else."""
    if not client.server.can("tools"):
        return []
    tools: list[Any] = await client.plain.list_tools()
    for number, tool in enumerate(tools):
        if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
            raise InvalidResult("tools/list", f"tools.{number}", "it is no tool with a name", {"tools": tools})
    return tools


def compare(pins: Pins, tools: Iterable[Tool], rules: Rules) -> Comparison:
    """How these tools, those of them that are allowed, compare with the `pins`."""
    fits = dict[str, bool]()
    for tool in tools:
        name = tool["name"]
        fits[name] = fits.get(name, True) and (pins.is_new or digest_of(tool) == pins.digest(name))
    shown = [name for name in fits if rules.shown(name) is not None]
    wrong = [name for name in shown if not fits[name]]
    return Comparison(
        [name for name in shown if fits[name]],
        [name for name in wrong if pins.digest(name) is not None],
        [name for name in wrong if pins.digest(name) is None],
        [name for name in pins.names if name not in fits],
    )


def accept(pins: Pins, tools: Sequence[Tool], names: Collection[str]) -> None:
    """Pins the tools with these names as they are now, or lets go of those that are gone; without names all of them.
    The rest stays as it was pinned. Raises OSError where it can't be written."""
    now = {tool["name"]: tool for tool in tools}
    if names:
        kept = {name: pinned for name in pins.names if (pinned := pins.definition(name)) is not None}
        changed: dict[str, Tool] = {name: one for name, one in kept.items() if name not in names}
        now = {**changed, **{name: one for name, one in now.items() if name in names}}
    pins.record(now.values())
