"""The official client hears of changes: by subscription in the handshake era, by `listen` after it."""

import os
import signal
from pathlib import Path

import pytest
from mcp.client.subscriptions import PromptsListChanged, ResourceUpdated, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types import ResourceUpdatedNotification, ToolListChangedNotification

from .peers import Case, Heard

# The client warns that `subscribe` and `unsubscribe` have gone from the newest version.
pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")

MODERN = pytest.mark.parametrize("mode", ["auto"])
HANDSHAKE = pytest.mark.parametrize("mode", ["legacy"])


@HANDSHAKE
async def test_subscription_ends(case: Case, file: Path, key: str) -> None:
    """After `unsubscribe` the next thing heard is another file's change."""
    heard, other = Heard(), file.with_name(f"{key}-other.txt")
    other.write_text("before\n")
    async with case.connect("filesystem", message_handler=heard) as client:
        await client.subscribe_resource(file.as_uri())
        await client.subscribe_resource(other.as_uri())
        await client.unsubscribe_resource(file.as_uri())
        file.write_text("after\n")
        other.write_text("after\n")
        changed = await heard.first(ResourceUpdatedNotification)
        assert changed.params.uri == other.as_uri()
    other.unlink()


@HANDSHAKE
async def test_subscription_to_an_unknown_resource_is_an_error(case: Case) -> None:
    async with case.connect("filesystem") as client:
        with pytest.raises(MCPError) as caught:
            await client.subscribe_resource("file:///nowhere/at/all")
    assert caught.value.code == -32002


@MODERN
async def test_listen_honors_only_served_resources(case: Case, file: Path) -> None:
    wanted = ["file:///nowhere/at/all", file.as_uri()]
    async with case.connect("filesystem") as client, client.listen(resource_subscriptions=wanted) as stream:
        assert stream.honored.resource_subscriptions == [file.as_uri()]


@MODERN
async def test_two_listen_streams_are_separate(case: Case, file: Path, key: str) -> None:
    async with (
        case.connect("bench") as client,
        client.listen(tools_list_changed=True) as tools,
        client.listen(prompts_list_changed=True) as prompts,
    ):
        await client.call_tool("add_tool", {"name": f"{key}-tool"})
        await client.call_tool("add_prompt", {"name": f"{key}-prompt"})
        assert await anext(tools) == ToolsListChanged()
        assert await anext(prompts) == PromptsListChanged()


@MODERN
async def test_listen_ends_with_its_client(case: Case, file: Path) -> None:
    """A stream that the client leaves does not hinder the next one."""
    async with case.connect("filesystem") as client:
        for text in ("first\n", "second\n"):
            async with client.listen(resource_subscriptions=[file.as_uri()]) as stream:
                file.write_text(text)
                assert await anext(stream) == ResourceUpdated(uri=file.as_uri())


@MODERN
async def test_server_ends_a_listen_stream(case: Case) -> None:
    """A server that is told to end says so on its streams: the client's loop ends, and nothing is lost."""
    async with case.connect_alone("bench") as client, client.listen(tools_list_changed=True) as stream:
        process = await client.call_tool("process")
        os.kill(int(process.content[0].text), signal.SIGTERM)
        assert [event async for event in stream] == []


@MODERN
async def test_changed_file_is_read_again(case: Case, file: Path) -> None:
    """The client may keep what it read; a change it hears of makes it ask again."""
    async with case.connect("filesystem") as client, client.listen(resource_subscriptions=[file.as_uri()]) as stream:
        await client.read_resource(file.as_uri())
        file.write_text("after\n")
        await anext(stream)
        (contents,) = (await client.read_resource(file.as_uri())).contents
        assert contents.text == "after\n"


@pytest.mark.parametrize("transport", ["http+token"])
async def test_change_by_another_client_is_announced(case: Case, key: str) -> None:
    heard = Heard()
    async with case.connect("bench", message_handler=heard) as client, case.connect("bench") as other:
        if case.handshake:
            await other.call_tool("add_tool", {"name": key})
            await heard.first(ToolListChangedNotification)
        else:
            async with client.listen(tools_list_changed=True) as stream:
                await other.call_tool("add_tool", {"name": key})
                assert await anext(stream) == ToolsListChanged()
