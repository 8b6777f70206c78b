"""One request under way, and all who wait for its result."""

from collections.abc import Awaitable, Callable
from copy import deepcopy
from typing import Any

import anyio

from ...errors import McpError

__all__ = ["Flight"]


class Flight:
    """The first caller makes the request in its own task, and leads; the others follow. Where the leader gives up, by
    being cancelled or for want of time, one of them leads the next."""

    def __init__(self) -> None:
        self._ended = anyio.Event()
        self._result: dict[str, Any] | None = None
        self._error: McpError | OSError | None = None

    async def lead(self, request: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        """Makes the request for everybody. Raises what it raises."""
        try:
            self._result = await request()
        except TimeoutError:  # others may have more time
            raise
        except (McpError, OSError) as error:
            self._error = error
            raise
        finally:
            self._ended.set()
        return self._result

    async def follow(self) -> dict[str, Any] | None:
        """Waits for the leader, and gives a result of its own; None where the leader gave up. Raises what the request
        raised."""
        await self._ended.wait()
        if self._error is not None:
            raise self._error
        return deepcopy(self._result)
