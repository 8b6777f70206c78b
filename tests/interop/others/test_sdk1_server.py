"""Our client at the server of the official Python SDK 1.x, on a WebSocket and over HTTP+SSE."""

import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from shared.client.client import Client
from shared.client.connect import connect
from shared.client.options import ClientOptions
from shared.protocol.types.client import ElicitResult
from shared.protocol.types.elicitation import ElicitForm
from tests import pypi
from tests.interop.others.environments import FOLDER
from tests.npm import Unavailable

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # the first one may have to build an environment

SECONDS = 30.0


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    try:
        python = pypi.require("sdk1", FOLDER / "requirements-sdk1.txt")
    except Unavailable as error:
        if os.environ.get("CI") == "true":
            pytest.fail(str(error))
        pytest.skip(str(error))
    command = [str(python), str(FOLDER / "serve_sdk1.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


@pytest.fixture(params=["ws://127.0.0.1:{}/mcp", "http://127.0.0.1:{}/sse"], ids=["websocket", "http+sse"])
def url(port: int, request: pytest.FixtureRequest) -> str:
    return str(request.param).format(port)


@asynccontextmanager
async def connected(url: str, **options: Any) -> AsyncIterator[Client]:
    with anyio.fail_after(SECONDS):
        async with connect(url, ClientOptions(**options)) as client:
            yield client


async def test_tools_are_listed_and_called(url: str) -> None:
    async with connected(url) as client:
        assert not client.stateless
        assert [tool["name"] for tool in await client.plain.list_tools()] == ["add", "count", "favourite"]
        assert (await client.plain.call_tool("add", {"a": 2, "b": 3}))["content"][0]["text"] == "5"


async def test_a_large_resource_is_read(url: str) -> None:
    async with connected(url) as client:
        result = await client.plain.read_resource("memo://one")
        assert result["contents"][0]["text"] == "ø" * 300_000


async def test_progress_is_reported(url: str) -> None:
    seen: list[float] = []
    async with connected(url) as client:
        await client.plain.call_tool("count", {"to": 3}, on_progress=lambda *report: seen.append(report[0]))
    assert seen == [1, 2, 3]


async def test_a_form_is_filled_in(url: str) -> None:
    async def fill_in(_form: ElicitForm) -> ElicitResult:
        return ElicitResult(action="accept", content={"colour": "green"})

    async with connected(url, elicit=fill_in) as client:
        assert (await client.plain.call_tool("favourite"))["content"][0]["text"] == "green"
