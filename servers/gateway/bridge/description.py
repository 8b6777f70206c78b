"""What a bridge says that it is: the server behind it, as far as a bridge passes it on."""

from collections.abc import Mapping
from typing import Any

from shared.extensions.tasks.extension import tasks_declared
from shared.protocol.session.client import ServerDescription
from shared.protocol.types.tasks import TASKS

from .tasks import has_tasks

_LISTS = ("tools", "prompts", "resources")

UNKNOWN: Mapping[str, Any] = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "completions": {},
    "logging": {},
}
"""What is declared before the server was reached for the first time: a client that has come by then is told no other
capabilities any more."""


def capabilities_of(description: ServerDescription, *, stateless: bool) -> dict[str, Any]:
    """The capabilities of a server, `stateless` or not, as a bridge declares them.

    Lists may change, which not every server declares that says so; log messages come from the bridge as well. A
    server without sessions tells of any resource it has. Tasks are our own, in both forms, where it has them in one.
    What is no object is left out.
    """
    found = {name: value for name, value in description.capabilities.items() if isinstance(value, dict)}
    found.pop("tasks", None)
    for name in _LISTS:
        if name in found:
            found[name] = {**found[name], "listChanged": True}
    if stateless and "resources" in found:
        found["resources"]["subscribe"] = True
    if "extensions" in found:
        others = {name: value for name, value in found.pop("extensions").items() if name != TASKS}
        if others:
            found["extensions"] = others
    if has_tasks(description, stateless=stateless):
        ours = tasks_declared()
        found |= {**ours, "extensions": {**found.get("extensions", {}), **ours["extensions"]}}
    return {**found, "logging": found.get("logging", {})}
