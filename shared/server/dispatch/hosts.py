"""How much of a result hosts show to their models. They cut longer results, and the model does not see the end, with
the cursor of the next page.

A host is a program with a model that uses tools. Each row of `HOSTS` was measured with the host, or taken from its
`source`, on the `date`. Unknown hosts receive as much as the operator allows.
"""

from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from .limits import CallLimits

SIZE_KEY = "anthropic/maxResultSizeChars"
"""The key in a tool's `_meta` that makes a host show more of its results."""


class HostLimit(NamedTuple):
    """The limits of one host."""

    name: str
    """The beginning of the host's `clientInfo.name`."""
    text_bytes: int
    """Maximum size, in bytes of JSON, of the text in a result that the model receives without cuts."""
    source: str
    date: str
    result_characters: int | None = None
    """The value to send as `SIZE_KEY`, if the host supports it: the number of characters to show."""


HOSTS = (
    # Without the key, Claude Code shows 2 KB of a result of more than 50,000 characters or 25,000 tokens. With it,
    # tokens are counted only in results that contain images.
    HostLimit("claude-code", 90_000, "Claude Code 2.1.330", "2026-11-29", 200_000),
    HostLimit("codex-mcp-client", 9_000, "Codex 0.169", "2026-11-29"),
    HostLimit("gemini-cli-mcp-client", 36_000, "Gemini CLI 0.61", "2026-11-29"),
    HostLimit("opencode", 45_000, "https://github.com/sst/opencode/issues/22565", "2026-11-28"),
)


_MAX_NAME_LENGTH = 100
"""The number of characters of a client's name that are compared."""


def find_host(info: dict[str, Any] | None) -> HostLimit | None:
    """Return the limits of the host whose `clientInfo` is `info`; None if the host is unknown."""
    name = (info or {}).get("name")
    return _find_by_name(name[:_MAX_NAME_LENGTH]) if isinstance(name, str) else None


@lru_cache(256)  # in the stateless era, each request contains the name of its client
def _find_by_name(name: str) -> HostLimit | None:
    return next((host for host in HOSTS if name.startswith(host.name)), None)


def budget_for(info: dict[str, Any] | None, budget: CallLimits) -> CallLimits:
    """Return `budget` with the text size that the host whose `clientInfo` is `info` shows to its model without cuts.
    If the operator has set a text size, or the host is unknown, return `budget` unchanged."""
    host = None if budget.text_bytes is not None else find_host(info)
    return budget if host is None else replace(budget, text_bytes=host.text_bytes)
