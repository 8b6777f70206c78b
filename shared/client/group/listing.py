"""Combined lists of the servers in a group, with the server of each item."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from ...protocol.types.prompts import Prompt
from ...protocol.types.resources import Resource, ResourceTemplate
from ...protocol.types.tools import Tool
from ..client import Client
from .member import Member
from .names import full_name

Item = TypeVar("Item", Tool, Prompt, Resource, ResourceTemplate)


@dataclass(frozen=True, slots=True)
class Listed(Generic[Item]):
    """One item in a list, with its server."""

    server: str
    name: str
    """The name of a tool or a prompt in the group, the URI of a resource, or a URI template."""
    item: Item
    """The item as the server sent it, with its own name."""


@dataclass(frozen=True, slots=True)
class Listing(Generic[Item]):
    """The items of all servers in a group, in the order of the servers."""

    items: list[Listed[Item]]
    failures: dict[str, Exception]
    """The errors of the servers whose lists are missing, by server."""


@dataclass(frozen=True, slots=True)
class ListKind(Generic[Item]):
    """A kind of list that servers with the `capability` offer. Tools and prompts get names in the group; items with
    URIs keep their URIs."""

    plural: str
    capability: str
    fetch: Callable[[Client], Awaitable[list[Item]]]
    name: Callable[[Item], str]
    has_uris: bool = False

    async def items(self, member: Member) -> list[Item]:
        """Return the items of a server; an empty list if the server declares no such list. The items' own names are
        stored in `member`, for calls by the names in the group.

        Raises ConnectionError if the server is not ready, and the same errors as the client's call.
        """
        client = member.client
        items = await self.fetch(client) if client.server.can(self.capability) else []
        if not self.has_uris:
            member.names[self.capability] = tuple(self.name(item) for item in items)
        return items

    def listed(self, server: str, item: Item) -> Listed[Item]:
        """Return an item of `server` with its name in the group."""
        name = self.name(item)
        return Listed(server, name if self.has_uris else full_name(server, name), item)


TOOLS = ListKind("tools", "tools", Client.list_tools, lambda tool: tool.name)
PROMPTS = ListKind("prompts", "prompts", Client.list_prompts, lambda prompt: prompt.name)
RESOURCES = ListKind("resources", "resources", Client.list_resources, lambda resource: resource.uri, has_uris=True)
TEMPLATES = ListKind(
    "resource templates",
    "resources",
    Client.list_resource_templates,
    lambda template: template.uri_template,
    has_uris=True,
)
