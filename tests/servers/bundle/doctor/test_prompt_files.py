"""Prompt files that a server reports as unusable."""

import json
from typing import Any

import pytest

from servers.bundle.doctor.prompt_files import problem_findings, read_problems
from shared import Implementation, Server
from shared.client.client import Client
from shared.testing import connected


def serving(text: str, name: str = "prompts") -> Server[None]:
    app: Server[None] = Server(Implementation(name=name, version="1"))

    @app.resource("prompt://")
    async def index() -> str:
        return text

    return app


def indexed(count: int) -> str:
    problem = {"library": 0, "file": "a\nb.md", "line": 3, "reason": "it is wrong"}
    return json.dumps({"problems": [problem] * count})


async def read(app: Server[Any]) -> list[str]:
    async with connected(app) as end, Client(end) as client:
        return [one.what for one in problem_findings("here", await read_problems(client))]


async def test_each_file_has_a_line_and_the_rest_are_counted() -> None:
    assert await read(serving(indexed(2))) == ["a\\nb.md:3: it is wrong"] * 2
    assert (await read(serving(indexed(1_020))))[20:] == ["1,000 more of its files have problems"]


async def test_a_library_that_could_not_be_fetched_is_named_by_address() -> None:
    problem = {"library": 0, "file": "", "line": None, "reason": "git+https://a/b: there is no such repository"}
    async with connected(serving(json.dumps({"problems": [problem]}))) as end, Client(end) as client:
        (found,) = problem_findings("here", await read_problems(client))
    assert found.what == "git+https://a/b: there is no such repository"
    assert found.fix == "correct the address of --library, or its repository; then run mcp-bundle-prompts update"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"problems": 5}', '{"problems": [5]}', '{"problems": [{}]}'])
async def test_an_invalid_index_gives_no_problems(text: str) -> None:
    assert await read(serving(text)) == []


async def test_other_servers_give_no_problems() -> None:
    assert await read(serving(indexed(1), name="notes")) == []
