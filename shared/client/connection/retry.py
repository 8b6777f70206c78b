"""The rules for repeating a failed request, without a clock and without I/O.

Any request that never reached the server may be repeated. A request that may have reached it is repeated only if it
is idempotent: lists, reads, completions, and tools that declare themselves idempotent. The client trusts the hints of
tools for nothing else (2025-11-25, Tools, Annotations).
"""

import random
from collections.abc import Callable, Mapping
from typing import Any

from ...errors import PeerError
from ...protocol.http.retry_after import RETRYABLE
from ...protocol.http.routing_headers import HeaderMismatch
from ...protocol.types.tools import named_tools
from ..errors import SessionLost, Unreached

MAX_ATTEMPTS = 4
"""Maximum number of times that one request is made."""
MAX_TOOLS = 5_000
"""Maximum number of idempotent tools that are remembered; beyond it, the oldest is dropped."""
BASE_SECONDS = 0.25
"""The upper bound in seconds of the first pause."""
MAX_BACKOFF_SECONDS = 10.0
"""The upper bound in seconds of every pause that the client chooses itself."""
MAX_RETRY_AFTER_SECONDS = 3_600.0
"""The longest pause in seconds that a server may request, before a request without a time limit is repeated."""
_IDEMPOTENT_METHODS = frozenset(
    {
        *("completion/complete", "ping", "prompts/get", "prompts/list", "resources/list", "resources/read"),
        *("resources/templates/list", "server/discover", "tools/list"),
        *("tasks/get", "tasks/update", "tasks/cancel"),
        *("skills/list", "skills/get", "resources/directory/read"),
    }
)


def backoff(failures: int, random_fraction: Callable[[], float] = random.random) -> float:
    """Return the seconds to wait after `failures` consecutive failures (at least 1). It is a random time, so that
    many clients do not all retry at the same moment, below a bound that doubles with each failure. `random_fraction`
    returns numbers from 0 to 1."""
    return random_fraction() * min(MAX_BACKOFF_SECONDS, BASE_SECONDS * 2.0 ** min(failures - 1, 16))


def is_header_mismatch(method: str, error: Exception) -> bool:
    """Return True if a tool call was refused because the headers that repeat its arguments were missing or wrong,
    since the client's list of tools was missing or outdated (2026-07-28, Streamable HTTP, Custom Headers). The tool
    has not run."""
    return method == "tools/call" and isinstance(error, PeerError) and error.code == HeaderMismatch.code


class RetryPolicy:
    """Decides which requests to one server to repeat, using the hints in its tool lists."""

    def __init__(self, random_fraction: Callable[[], float] = random.random) -> None:
        self._random_fraction = random_fraction
        self._idempotent_tools: dict[str, None] = {}

    def remember_idempotent_tools(self, result: Mapping[str, Any]) -> None:
        """Remember which tools in a result of `tools/list` are idempotent."""
        for name, tool in named_tools(result):
            hints = tool.get("annotations")
            if isinstance(hints, dict) and True in (hints.get("idempotentHint"), hints.get("readOnlyHint")):
                self._idempotent_tools[name] = None
                if len(self._idempotent_tools) > MAX_TOOLS:
                    del self._idempotent_tools[next(iter(self._idempotent_tools))]
            else:
                self._idempotent_tools.pop(name, None)

    def retry_delay(
        self, method: str, params: Mapping[str, Any], error: Exception, failures: int, remaining: float | None
    ) -> float | None:
        """Return the seconds to wait before a request is repeated; None if it is not to be repeated. It has failed
        `failures` times, most recently with `error`, and must end within `remaining` seconds."""
        if failures >= MAX_ATTEMPTS:
            return None
        if not isinstance(error, Unreached):
            is_temporary = isinstance(error, ConnectionError) or (
                isinstance(error, PeerError) and error.code in RETRYABLE
            )
            is_tool = method == "tools/call" and params.get("name") in self._idempotent_tools
            if not (is_temporary and (is_tool or method in _IDEMPOTENT_METHODS)):
                return None
        # The server works and has only forgotten the session, so there is nothing to wait for.
        if isinstance(error, SessionLost) and failures == 1:
            return 0.0
        data = error.data if isinstance(error, PeerError) else None
        retry_after = data.get("retryAfter") if isinstance(data, dict) else None
        seconds = backoff(failures, self._random_fraction)
        if isinstance(retry_after, int | float):
            seconds = max(seconds, retry_after)  # not converted to float, for which an integer may be too large
        return float(seconds) if seconds < (MAX_RETRY_AFTER_SECONDS if remaining is None else remaining) else None
