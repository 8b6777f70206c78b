"""What the servers of a group have, with whose it is."""

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
    """Something that a server of a group has."""

    server: str
    name: str
    """The name in the group, of a tool or a prompt; the URI of a resource, or the template of one."""
    item: Item
    """As the server gave it, with its own name."""


@dataclass(frozen=True, slots=True)
class Listing(Generic[Item]):
    """What the servers of a group have, in their order."""

    items: list[Listed[Item]]
    failures: dict[str, Exception]
    """By server, why it could not say what it has."""


@dataclass(frozen=True, slots=True)
class Kind(Generic[Item]):
    """A list that servers with the `capability` have; those of URIs need no names of the group's."""

    what: str
    capability: str
    ask: Callable[[Client], Awaitable[list[Item]]]
    name: Callable[[Item], str]
    is_of_uris: bool = False

    async def items(self, member: Member) -> list[Item]:
        """What the server has; nothing where it says that there is no such list. Its names are kept with it.

        Raises ConnectionError where it is not ready, and what the client's call does.
        """
        client = member.client
        items = await self.ask(client) if client.server.can(self.capability) else []
        if not self.is_of_uris:
            member.names[self.capability] = tuple(self.name(item) for item in items)
        return items

    def listed(self, server: str, item: Item) -> Listed[Item]:
        """An item of `server` with its name in the group."""
        name = self.name(item)
        return Listed(server, name if self.is_of_uris else full_name(server, name), item)


TOOLS = Kind("tools", "tools", Client.list_tools, lambda tool: tool.name)
PROMPTS = Kind("prompts", "prompts", Client.list_prompts, lambda prompt: prompt.name)
RESOURCES = Kind("resources", "resources", Client.list_resources, lambda one: one.uri, is_of_uris=True)
TEMPLATES = Kind(
    "resource templates",
    "resources",
    Client.list_resource_templates,
    lambda template: template.uri_template,
    is_of_uris=True,
)
