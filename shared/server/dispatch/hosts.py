"""The size of results that hosts show their models: they cut longer results, and with them the cursor to the rest.

Each row was observed with the program itself or read in the `source`, at that date. Unknown hosts receive as much as
the operator allows.
"""

from dataclasses import replace
from typing import Any, NamedTuple

from .limits import CallLimits

SIZE_KEY = "anthropic/maxResultSizeChars"
"""The key of a tool's `_meta` by which a host shows more of its results."""


class Host(NamedTuple):
    """A program whose model uses tools."""

    name: str
    """Its name in `clientInfo.name`, or a prefix of it."""
    text_bytes: int
    """Bytes of text in one result, as JSON, that its model receives whole."""
    source: str
    date: str
    result_characters: int | None = None
    """The value for `SIZE_KEY`, if it shows that many characters only with it."""


HOSTS = (
    # Without the key, it shows 2 KB of a result of more than 50,000 characters or 25,000 tokens. With it, tokens are
    # counted only in results that contain images.
    Host("claude-code", 90_000, "Claude Code 2.1.330", "2026-11-29", 200_000),
    Host("codex-mcp-client", 9_000, "Codex 0.169", "2026-11-29"),
    Host("gemini-cli-mcp-client", 36_000, "Gemini CLI 0.61", "2026-11-29"),
    Host("opencode", 45_000, "https://github.com/sst/opencode/issues/22565", "2026-11-28"),
)


def find_host(info: dict[str, Any] | None) -> Host | None:
    """Return the host of that client; None for an unknown one."""
    name = (info or {}).get("name")
    if not isinstance(name, str):
        return None
    return next((host for host in HOSTS if name.startswith(host.name)), None)


def budget_for(info: dict[str, Any] | None, budget: CallLimits) -> CallLimits:
    """Return `budget` with the text size that the model of that client receives whole, unless the operator has set
    one."""
    host = None if budget.text_bytes is not None else find_host(info)
    return budget if host is None else replace(budget, text_bytes=host.text_bytes)
