"""What hosts show their models of a result: one that is longer they cut, and with it the cursor to the rest.

Each row was seen with the program itself or read where `source` says, at that date. Who is not here is given as much
as the operator allows.
"""

from dataclasses import replace
from typing import Any, NamedTuple

from .limits import CallLimits

SIZE_KEY = "anthropic/maxResultSizeChars"
"""The key of a tool's `_meta` by which a host shows more of its results."""


class Host(NamedTuple):
    """A program that has a model use tools."""

    name: str
    """What it calls itself in `clientInfo.name`, or how that begins."""
    text_bytes: int
    """Of the text of one result, as JSON, what its model gets whole."""
    source: str
    date: str
    result_characters: int | None = None
    """What it is to be told under `SIZE_KEY`, where it shows that much only then."""


HOSTS = (
    # 50,000 characters without the key, of which a model then sees 2 KB; and 25,000 tokens in any case.
    Host("claude-code", 90_000, "Claude Code 2.1.330", "2026-11-29", 200_000),
    Host("codex-mcp-client", 9_000, "Codex 0.169", "2026-11-29"),
    Host("gemini-cli-mcp-client", 36_000, "Gemini CLI 0.61", "2026-11-29"),
    Host("opencode", 45_000, "https://github.com/sst/opencode/issues/22565", "2026-11-28"),
)


def find_host(info: dict[str, Any] | None) -> Host | None:
    """Return the host that calls itself so; None for one that is not known."""
    name = (info or {}).get("name")
    if not isinstance(name, str):
        return None
    return next((host for host in HOSTS if name.startswith(host.name)), None)


def budget_for(info: dict[str, Any] | None, budget: CallLimits) -> CallLimits:
    """Return `budget` with the text that the model of that client gets whole, unless the operator says how much that
    is."""
    host = None if budget.text_bytes is not None else find_host(info)
    return budget if host is None else replace(budget, text_bytes=host.text_bytes)
