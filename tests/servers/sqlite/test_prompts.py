"""The prompt, through the protocol."""

from pathlib import Path
from typing import Any

import pytest

from servers.sqlite.server import app
from servers.sqlite.settings import Settings
from tests.shared.server.peer import ERAS, NEWEST_HANDSHAKE, talking


async def ask(path: Path, method: str, params: dict[str, Any], version: str = NEWEST_HANDSHAKE) -> dict[str, Any]:
    async with talking(app, version, settings=Settings(databases=[path])) as peer:
        answer: dict[str, Any] = await peer.request(method, params)
    return answer


async def rendered(path: Path, version: str = NEWEST_HANDSHAKE, **arguments: str) -> str:
    answer = await ask(path, "prompts/get", {"name": "explore_database", "arguments": arguments}, version)
    (message,) = answer["result"]["messages"]
    text: str = message["content"]["text"]
    return text


@pytest.mark.parametrize("version", ERAS)
async def test_the_prompt_names_the_topic_the_database_and_the_tools_in_order(file: Path, version: str) -> None:
    text = await rendered(file, version, topic="who orders {most}?", database="data")
    assert text.startswith("Explore the SQLite database 'data'. Find out about this: who orders {most}?\n")
    tools = ["describe_database", "describe_table", "explain_query", "read_query", "append_insight"]
    assert sorted(tools, key=text.index) == tools
    names = {tool.name for tool in app.tools.all()}
    assert names.issuperset(tools)


async def test_the_prompt_needs_no_arguments(file: Path) -> None:
    listed = (await ask(file, "prompts/list", {}))["result"]["prompts"]
    assert [(one["name"], one.get("required", False)) for one in listed[0]["arguments"]] == [
        ("topic", False),
        ("database", False),
    ]
    assert (await rendered(file)).startswith("Explore the SQLite databases of this server. ")


async def test_a_database_that_is_not_there_is_an_error(file: Path) -> None:
    params = {"name": "explore_database", "arguments": {"database": "other"}}
    error = (await ask(file, "prompts/get", params))["error"]
    assert error["message"] == "bad_database: there is no database of that name. There are: data."


async def test_the_database_is_completed(file: Path) -> None:
    ref = {"type": "ref/prompt", "name": "explore_database"}
    answer = await ask(file, "completion/complete", {"ref": ref, "argument": {"name": "database", "value": "d"}})
    assert answer["result"]["completion"]["values"] == ["data"]
