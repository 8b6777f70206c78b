"""The official client opens a connection, lists what there is, and leaves."""

import os

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from shared.protocol.types.resources import CONDITIONAL_READS

from .peers import PATIENCE, Case, over_http


@pytest.mark.parametrize("mode", ["auto", "legacy"])  # a pinned version asks for no introduction
async def test_the_server_introduces_itself(case: Case) -> None:
    async with case.connect("filesystem") as client:
        assert client.server_info.name == "filesystem"
        assert client.server_info.title == "Filesystem"
        assert client.instructions.startswith("Works only on files")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_server_declares_its_capabilities(case: Case) -> None:
    async with case.connect("bench") as client:
        declared = client.server_capabilities.model_dump(by_alias=True, exclude_none=True)
        assert declared.pop("resources")["listChanged"] is True
        assert declared == {
            "logging": {},
            "completions": {},
            "tools": {"listChanged": True},
            "prompts": {"listChanged": True},
            "extensions": {CONDITIONAL_READS: {}},
        }


async def test_many_calls_are_served_concurrently(case: Case) -> None:
    said: dict[int, str] = {}
    async with case.connect("bench") as client, anyio.create_task_group() as tasks:

        async def call(number: int) -> None:
            said[number] = (await client.call_tool("echo", {"text": f"call {number}"})).content[0].text

        for number in range(30):
            tasks.start_soon(call, number)
    assert said == {number: f"call {number}" for number in range(30)}


@pytest.mark.parametrize("transport", ["stdio"])
async def test_the_server_ends_with_its_client(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client closes stdin, and would send a signal after its patience: two seconds, but for busy machines."""
    monkeypatch.setattr("mcp.client.stdio.PROCESS_TERMINATION_TIMEOUT", PATIENCE / 2)
    async with case.connect("bench") as client:
        pid = int((await client.call_tool("process", {})).content[0].text)
        os.kill(pid, 0)
        left = anyio.current_time()
    assert anyio.current_time() - left < PATIENCE / 2
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize("mode", ["legacy"])  # the newest version has no sessions
@pytest.mark.parametrize("transport", ["http+token"])
async def test_session_ends_with_its_client(case: Case) -> None:
    health = case.http.url("bench", case.token).replace("/mcp", "/healthz")
    headers = {} if case.token is None else {"Authorization": f"Bearer {case.token}"}
    async with httpx2.AsyncClient(trust_env=False, headers=headers) as http:
        before = (await http.get(health)).json()["sessions"]
        async with case.connect("bench"):
            assert (await http.get(health)).json()["sessions"] == before + 1
        assert (await http.get(health)).json()["sessions"] == before


@pytest.mark.parametrize("transport", ["http+token"])
async def test_a_client_without_a_token_is_refused(case: Case) -> None:
    with anyio.fail_after(PATIENCE):
        async with over_http(case.http.url("filesystem", case.token), None) as transport:
            with pytest.RaisesGroup(MCPError, allow_unwrapped=True, flatten_subgroups=True):
                async with Client(transport, mode=case.mode) as client:
                    await client.list_tools()
