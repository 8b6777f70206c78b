"""The description of a bridge: the description of the server behind it, as far as the bridge supports it."""

from collections.abc import Mapping
from typing import Any

from shared.extensions.tasks.extension import task_capabilities
from shared.protocol.session.descriptions import ServerDescription
from shared.protocol.types.tasks import TASKS

from .tasks import supports_tasks

_LISTS = ("tools", "prompts", "resources")

UNKNOWN: Mapping[str, Any] = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "completions": {},
    "logging": {},
}
"""The capabilities that are declared until the server is first reached: all that a server may have, since a client
that connects earlier never learns the actual ones."""


def announces_changes(description: ServerDescription) -> bool:
    """Return True if a server declares that it announces the changes to all its lists."""
    return all(description.can(name, "listChanged") for name in _LISTS if description.can(name))


def capabilities_of(description: ServerDescription, *, stateless: bool) -> dict[str, Any]:
    """Return the capabilities that a bridge declares for a server, `stateless` or not.

    Each list is declared as changing, because the server may be replaced, and log messages as supported, because the
    bridge sends some itself. A stateless server supports subscriptions to any of its resources. If the server
    supports tasks, the bridge declares those that it runs itself, in the forms of both eras. Values that are not
    objects are left out.
    """
    capabilities = {name: value for name, value in description.capabilities.items() if isinstance(value, dict)}
    capabilities.pop("tasks", None)
    for name in _LISTS:
        if name in capabilities:
            capabilities[name] = {**capabilities[name], "listChanged": True}
    if stateless and "resources" in capabilities:
        capabilities["resources"]["subscribe"] = True
    if "extensions" in capabilities:
        others = {name: value for name, value in capabilities.pop("extensions").items() if name != TASKS}
        if others:
            capabilities["extensions"] = others
    if supports_tasks(description, stateless=stateless):
        ours = task_capabilities()
        capabilities |= {**ours, "extensions": {**capabilities.get("extensions", {}), **ours["extensions"]}}
    return {**capabilities, "logging": capabilities.get("logging", {})}
