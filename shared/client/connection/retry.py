"""What may be asked again after a failure, and when: rules alone, without a clock and without I/O.

A request that never came to the server may be made again, whatever it is. One that may have come there is made again
only where doing it twice is doing it once: lists, reads, completions, and tools that say so of themselves. Their
hints are not to be trusted for more than that (2025-11-25, Tools, Annotations).
"""

import random
from collections.abc import Callable, Mapping
from typing import Any

from ...errors import PeerError
from ...protocol.http.retry_after import BUSY
from ...protocol.http.routing_headers import HeaderMismatch
from ..errors import SessionLost, Unreached

ATTEMPTS = 4
"""How often one request is made, in all."""
MAX_TOOLS = 5_000
"""Tools that are remembered; the oldest are forgotten."""
BASE_SECONDS = 0.25
LONGEST_SECONDS = 10.0
PATIENCE_SECONDS = 3_600.0
"""A request without a limit is not made again where the server wants to be left alone for so long."""
_SAFE = frozenset(
    {
        *("completion/complete", "ping", "prompts/get", "prompts/list", "resources/list", "resources/read"),
        *("resources/templates/list", "server/discover", "tools/list"),
        *("tasks/get", "tasks/update", "tasks/cancel"),
        *("skills/list", "skills/get", "resources/directory/read"),
    }
)


def backoff(failed: int, chance: Callable[[], float] = random.random) -> float:
    """The seconds to wait after `failed` failures in a row, from 1 on: anything up to a bound that doubles with each
    one, so that many clients do not come back at once. `chance` gives numbers from 0 to 1."""
    return chance() * min(LONGEST_SECONDS, BASE_SECONDS * 2.0 ** min(failed - 1, 16))


def is_unlisted(method: str, error: Exception) -> bool:
    """Whether a tool was not called as its list says that it must be: headers repeat some of its arguments, and which
    ones is not known or has changed (2026-07-28, Streamable HTTP, Custom Headers). It has not run."""
    return method == "tools/call" and isinstance(error, PeerError) and error.code == HeaderMismatch.code


class Retries:
    """When the requests to one server are made again. It knows of its tools what their lists said."""

    def __init__(self, chance: Callable[[], float] = random.random) -> None:
        self._chance = chance
        self._tools: dict[str, None] = {}

    def learn(self, listed: Mapping[str, Any]) -> None:
        """Takes a result of `tools/list`: which of its tools may be called twice."""
        tools = listed.get("tools")
        for tool in tools if isinstance(tools, list) else ():
            if not isinstance(tool, dict) or not isinstance(name := tool.get("name"), str):
                continue
            hints = tool.get("annotations")
            if isinstance(hints, dict) and True in (hints.get("idempotentHint"), hints.get("readOnlyHint")):
                self._tools[name] = None
                if len(self._tools) > MAX_TOOLS:
                    del self._tools[next(iter(self._tools))]
            else:
                self._tools.pop(name, None)

    def pause(
        self, method: str, params: Mapping[str, Any], error: Exception, failed: int, left: float | None
    ) -> float | None:
        """How many seconds to wait before a request is made again that failed `failed` times, with `error` the last
        time, and has `left` seconds; None where it is not made again."""
        if failed >= ATTEMPTS or not self._may_repeat(method, params, error):
            return None
        # The server answers, and has merely forgotten us: there is nothing to wait for.
        if isinstance(error, SessionLost) and failed == 1:
            return 0.0
        seconds = max(backoff(failed, self._chance), _asked_for(error))
        return float(seconds) if seconds < (PATIENCE_SECONDS if left is None else left) else None

    def _may_repeat(self, method: str, params: Mapping[str, Any], error: Exception) -> bool:
        if isinstance(error, Unreached):
            return True
        if not isinstance(error, ConnectionError) and not (isinstance(error, PeerError) and error.code in BUSY):
            return False
        return method in _SAFE or (method == "tools/call" and params.get("name") in self._tools)


def _asked_for(error: Exception) -> float:
    """The seconds that the server wants to be left alone; an integer may be one that no float holds."""
    data = error.data if isinstance(error, PeerError) else None
    seconds = data.get("retryAfter") if isinstance(data, dict) else None
    return seconds if isinstance(seconds, int | float) and seconds > 0 else 0.0
