"""Answers through the gateway equal those of a direct connection, in both eras."""

from typing import Any

import pytest

from servers.everything.features.resources import WATCHED
from servers.everything.server import app
from servers.gateway.joined.argument_schemas import flatten
from servers.gateway.joined.gateway import gateway
from shared import Run
from shared.protocol.types.base import LOG_LEVEL
from tests.servers.everything.peer import CAPABILITIES, settled
from tests.servers.gateway.joined.members import Door
from tests.shared.server.peer import ERAS, Json, talking
from tests.wire import STATELESS

ARGUMENTS: dict[str, Json] = {"echo": {"text": "a"}, "long_call": {"seconds": 0.01, "steps": 2}}
RANDOM = ("requestState", "elicitationId")
"""What is another one each time."""


def without_chance(value: Any) -> Any:
    match value:
        case dict():
            return {key: without_chance(item) for key, item in value.items() if key not in RANDOM}
        case list():
            return [without_chance(item) for item in value]
        case _:
            return value


def tells_of_list(method: str) -> bool:
    return method.endswith("/list_changed")


async def everything_said(running: Run[Any], version: str) -> dict[str, list[Json]]:
    """What a server says to each request that may be made of it, one after another, by the request; and which of its
    lists change meanwhile, which a gateway tells a little later."""
    said: dict[str, list[Json]] = {}
    changed: set[str] = set()
    WATCHED.version = 1
    async with talking(running, version, CAPABILITIES) as peer:

        async def say(method: str, **params: Any) -> list[Json]:
            told = said[f"{method} {params}"] = list[Json]()
            level = {LOG_LEVEL: "debug"} if version == STATELESS else {}
            await settled(peer, method, params, heard=told.append, progressToken="token", **level)
            changed.update(filter(tells_of_list, (one.get("method", "") for one in told)))
            told[:] = [without_chance(one) for one in told if not tells_of_list(one.get("method", ""))]
            return told

        if version != STATELESS:
            await say("logging/setLevel", level="debug")
        lists: dict[str, list[Json]] = {}
        for method, what in [
            ("tools/list", "tools"),
            ("prompts/list", "prompts"),
            ("resources/list", "resources"),
            ("resources/templates/list", "resourceTemplates"),
        ]:
            lists[what] = (await say(method))[-1]["result"][what]
        for tool in lists["tools"]:
            await say("tools/call", name=tool["name"], arguments=ARGUMENTS.get(tool["name"], {}))
        await say("tools/call", name="no_such_tool")
        await say("tools/call", name="echo", arguments={"text": 1})
        for how in ("tool", "missing_resource", "crash"):
            await say("tools/call", name="fail", arguments={"how": how})
        for prompt in lists["prompts"]:
            arguments = {one["name"]: "test://a" for one in prompt.get("arguments", ())}
            await say("prompts/get", name=prompt["name"], arguments=arguments)
            await say("prompts/get", name=prompt["name"])
            for argument in arguments:
                ref = {"type": "ref/prompt", "name": prompt["name"]}
                await say("completion/complete", ref=ref, argument={"name": argument, "value": ""})
        await say("prompts/get", name="no_such_prompt")
        for uri in [one["uri"] for one in lists["resources"]] + ["test://template/1/data", "test://nothing"]:
            await say("resources/read", uri=uri)
        for template in lists["resourceTemplates"]:
            ref = {"type": "ref/resource", "uri": template["uriTemplate"]}
            await say("completion/complete", ref=ref, argument={"name": "id", "value": ""})
        for method in ("skills/list", "no/such/method"):
            await say(method)
        for uri in ("skill://try-a-client/SKILL.md", "skill://nothing/SKILL.md"):
            await say("skills/get", uri=uri)
        await say("resources/directory/read", uri="skill://try-a-client")
    return said | {"changed lists": [{"method": method} for method in sorted(changed)]}


@pytest.mark.parametrize("version", ERAS)
async def test_answers_equal_those_of_a_direct_connection(version: str) -> None:
    async with app.open() as running:
        directly = await everything_said(running, version)
    door = Door("everything", app)
    try:
        await door.open()
        async with gateway([door], implementation=app.implementation).open() as running:
            through = await everything_said(running, version)
    finally:
        await door.close()
    if version != STATELESS:
        # The only difference: models refuse alternatives at the top level.
        for tool in directly["tools/list {}"][-1]["result"]["tools"]:
            tool["inputSchema"] = flatten(tool["inputSchema"])
    assert list(through) == list(directly)
    differing = {name: (directly[name], through[name]) for name in directly if directly[name] != through[name]}
    assert differing == {}
