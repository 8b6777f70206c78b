"""What the drivers of both clients on the Python SDK 2.x have in common. Runs in the environment of either."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from driving import LETTERS, Ears, by_ears
from mcp.client.subscriptions import listen
from pydantic import BaseModel


def wire(model: BaseModel) -> dict[str, Any]:
    """A value as it is on the wire."""
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


class Modern:
    """The part of a connection that is the SDK's."""

    def __init__(self, client: Any, ears: Ears) -> None:
        self.ears = ears
        self._client = client

    @property
    def _handshake(self) -> bool:
        return bool(self._client.mode == "legacy")

    async def cancelled(self, name: str, arguments: dict[str, Any]) -> None:
        """Calls, waits for the first report of progress, and cancels the call."""
        began = asyncio.Event()

        async def progress(_done: float, _total: float | None, _message: str | None) -> None:
            began.set()

        call = asyncio.create_task(self.call(name, arguments, progress))
        await began.wait()
        call.cancel()
        await asyncio.wait([call])

    @asynccontextmanager
    async def listening(self, **wanted: Any) -> AsyncIterator[Callable[[], Awaitable[dict[str, Any]]]]:
        """Hears of one thing."""
        (kind,) = wanted
        session = self._client.session
        if self._handshake:
            async with by_ears(self.ears, wanted) as heard:
                if kind == "uri":
                    await session.subscribe_resource(wanted["uri"])
                yield heard
                if kind == "uri":
                    await session.unsubscribe_resource(wanted["uri"])
            return
        asked = {"resource_subscriptions": [wanted["uri"]]} if kind == "uri" else {f"{kind}_list_changed": True}
        async with listen(session, **asked) as stream:

            async def heard() -> dict[str, Any]:
                event = await anext(stream)
                return {"method": LETTERS[kind], "uri": getattr(event, "uri", None)}

            yield heard
