"""The amount of a result that hosts show their models. They cut longer results, and lose the cursor to the rest.

Each row was measured with the program itself or taken from `source`, on `date`. Unknown hosts receive as much as the
operator allows.
"""

from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from .limits import CallLimits

SIZE_KEY = "anthropic/maxResultSizeChars"
"""The key in a tool's `_meta` that makes a host show more of its results."""


class HostLimit(NamedTuple):
    """The limit of one host, a program whose model uses tools."""

    name: str
    """The host's name in `clientInfo.name`, or a prefix of the name."""
    text_bytes: int
    """Bytes of text in one result, as JSON, that the host's model receives whole."""
    source: str
    date: str
    result_characters: int | None = None
    """The value to send as `SIZE_KEY`, if the host needs it to show that many characters."""


HOSTS = (
    # Without the key, Claude Code shows 2 KB of a result of more than 50,000 characters or 25,000 tokens. With it,
    # tokens are counted only in results that contain images.
    HostLimit("claude-code", 90_000, "Claude Code 2.1.330", "2026-11-29", 200_000),
    HostLimit("codex-mcp-client", 9_000, "Codex 0.169", "2026-11-29"),
    HostLimit("gemini-cli-mcp-client", 36_000, "Gemini CLI 0.61", "2026-11-29"),
    HostLimit("opencode", 45_000, "https://github.com/sst/opencode/issues/22565", "2026-11-28"),
)


_MAX_NAME_LENGTH = 100
"""Characters of a client's name that are compared."""


def find_host(info: dict[str, Any] | None) -> HostLimit | None:
    """Return the limit of the host with that `clientInfo`; None if the host is unknown."""
    name = (info or {}).get("name")
    return _find_by_name(name[:_MAX_NAME_LENGTH]) if isinstance(name, str) else None


@lru_cache(256)  # without a session, each request names its client
def _find_by_name(name: str) -> HostLimit | None:
    return next((host for host in HOSTS if name.startswith(host.name)), None)


def budget_for(info: dict[str, Any] | None, budget: CallLimits) -> CallLimits:
    """Return `budget` with the text size that the client's model receives whole, unless the operator has set a text
    size."""
    host = None if budget.text_bytes is not None else find_host(info)
    return budget if host is None else replace(budget, text_bytes=host.text_bytes)
