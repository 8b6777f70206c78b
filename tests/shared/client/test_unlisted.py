"""A tool whose arguments headers repeat is called although nobody has listed it, or not since it has changed."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import pytest
from pydantic import Field

from shared.client.client import Client
from shared.client.connect import connect_http
from shared.client.options import ClientOptions
from shared.errors import PeerError, RpcError
from tests.shared.client.small import Small, listening

MISMATCH = -32020


class Marked(Small):
    """A server with a tool of which headers repeat an argument, and one that is never satisfied."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        for function in (self.forecast, self.insist):
            self.app.tool()(function)

    async def forecast(self, city: Annotated[str, Field(json_schema_extra={"x-mcp-header": "City"})]) -> str:
        """Foretell."""
        return f"rain in {city}"

    async def insist(self) -> str:
        """Want another header."""
        self.calls += 1
        raise RpcError("a header is missing", code=MISMATCH)


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@asynccontextmanager
async def connected(small: Small, **options: Any) -> AsyncIterator[Client]:
    async with (
        listening(small) as (address, _),
        connect_http(f"http://{address}/mcp", ClientOptions(mode="stateless", **options)) as client,
    ):
        yield client


async def test_a_tool_that_was_not_listed_is_called() -> None:
    async with connected(Marked()) as client:
        assert (await client.call_tool("forecast", {"city": "Zürich"})).text == "rain in Zürich"


async def test_a_tool_is_called_once_more_and_no_oftener() -> None:
    small = Marked()
    async with connected(small) as client:
        with pytest.raises(PeerError) as refusal:
            await client.call_tool("insist")
        assert (refusal.value.code, small.calls) == (MISMATCH, 2)
