"""The client that the official suite puts to the test: our own, which does what each scenario asks for.

The suite starts it once a scenario, as `python -m tests.checks.conformance.client URL`, and says which one in the
environment. It prints DONE at the end: the suite takes no notice of a client that fails in one of many scenarios.

They are all started at once, so what takes time to import is left to those that use it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from shared.client.client import Client
    from shared.protocol.types.client import ElicitResult
    from shared.protocol.types.elicitation import ElicitForm
    from shared.protocol.types.sampling import CreateMessageParams

DONE = "the client did all that it was asked for"
AUTH = "auth/"
"""The scenarios in which the client has to log in."""

Play = Callable[["Client"], Awaitable[object]]


async def list_tools(client: Client) -> None:
    """Opens the session, and looks around."""
    await client.list_tools()


async def call_tool(client: Client) -> None:
    """A tool with numbers."""
    await client.list_tools()
    await client.call_tool("add_numbers", {"a": 5, "b": 3})


async def call_every_tool(client: Client) -> None:
    """What is listed can be called without arguments, or with texts."""
    for tool in await client.list_tools():
        required = tool.input_schema.get("required", ())
        await client.call_tool(tool.name, dict.fromkeys(required, "text"))


async def use_everything(client: Client) -> None:
    """Every method whose headers are looked at."""
    await call_every_tool(client)
    for resource in await client.list_resources():
        await client.read_resource(resource.uri)
    for prompt in await client.list_prompts():
        await client.get_prompt(prompt.name)


async def call_as_told(client: Client) -> None:
    """The calls that the suite lists."""
    await client.list_tools()
    for call in json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])["toolCalls"]:
        await client.call_tool(call["name"], call["arguments"])


async def echo_schema(client: Client) -> None:
    """A schema comes back as it came."""
    schemas = {tool.name: tool.input_schema for tool in await client.list_tools()}
    await client.call_tool("json_schema_echo", {"schema": schemas["json_schema_2020_12_tool"]})


async def check_arguments(client: Client) -> None:
    """A schema that refers to a place in the network is put to use, and nothing is fetched."""
    from shared.errors import PeerError

    (tool,) = await client.list_tools()
    with suppress(PeerError):  # the tool is there to be looked at
        await client.call_tool(tool.name, {"id": "a", "profile": {}})


async def list_skills(client: Client) -> None:
    """Skills are found out, and left alone."""
    from shared.client.skills.skills import ServerSkills

    await ServerSkills(client, "mock").list_skills()


async def refuse_skill(client: Client) -> None:
    """Loads a skill that is not what was listed, and goes on to its next file only if it is let. Raises RuntimeError
    where it is."""
    from shared.client.skills.skill_checks import SkillRefused
    from shared.client.skills.skills import ServerSkills

    skills = ServerSkills(client, "mock")
    (entry,) = await skills.list_skills()
    try:
        skill = await skills.load(entry)
        await skill.read("references/FORMS.md")
    except SkillRefused:
        return
    raise RuntimeError("the skill was not refused")


async def list_and_call(client: Client) -> None:
    """Every tool, each of which may want more scopes; a second round may meet another issuer."""
    await call_every_tool(client)
    await call_every_tool(client)


async def be_refused(client: Client) -> NoReturn:
    """What the server or the issuer says must not be taken. Raises RuntimeError where it was."""
    await client.list_tools()
    raise RuntimeError("the client has logged in all the same")


REFUSED = dict.fromkeys(
    (
        "auth/resource-mismatch",
        "auth/scope-retry-limit",
        "auth/iss-supported-missing",
        "auth/iss-wrong-issuer",
        "auth/iss-unexpected",
        "auth/iss-normalized",
        "auth/metadata-issuer-mismatch",
    ),
    be_refused,
)

SCENARIOS: dict[str, Play] = {
    "tools_call": call_tool,
    "elicitation-sep1034-client-defaults": call_every_tool,
    "sse-retry": call_every_tool,
    "json-schema-2020-12-preservation": echo_schema,
    "sep-2322-client-request-state": call_every_tool,
    "http-standard-headers": use_everything,
    "http-custom-headers": call_as_told,
    "http-invalid-tool-headers": call_every_tool,
    "json-schema-ref-no-deref": check_arguments,
    "sep-2640-client-no-prefetch": list_skills,
    "sep-2640-client-verify-digest": refuse_skill,
    "sep-2640-client-verify-size": refuse_skill,
    "sep-2640-client-verify-frontmatter": refuse_skill,
    **REFUSED,
}
"""The others are satisfied with a list of tools."""


async def confirm(form: ElicitForm) -> ElicitResult:
    """Agrees, and leaves everything else in the form as the server suggests it."""
    from shared.protocol.types.client import ElicitResult

    fields = form.requested_schema["properties"]
    return ElicitResult(action="accept", content={"confirmed": True} if "confirmed" in fields else {})


async def sample(_conversation: CreateMessageParams) -> NoReturn:
    """No scenario asks for it. That it can be asked for is declared, and looked at."""
    raise NotImplementedError


async def play(scenario: str, version: str, url: str) -> None:
    """Does what `scenario` asks for at `url`. Raises what the client raises."""
    from shared.client.connect import connect_http
    from shared.client.options import ClientOptions
    from shared.errors import AuthError

    is_auth = scenario.startswith(AUTH)
    scene = SCENARIOS.get(scenario, list_and_call if is_auth else list_tools)
    # An extension has no version of its own; that of skills came with stateless servers.
    mode = "stateless" if scene in (list_skills, refuse_skill) else version
    strict = scene is check_arguments
    options = ClientOptions(mode=mode, elicit=confirm, sample=sample, roots=(), check_arguments=strict)
    auth = None
    if is_auth:
        from tests.checks.conformance.login import credentials

        auth = credentials(scenario, url)
    with suppress(AuthError) if scene is be_refused else nullcontext():
        async with connect_http(url, options, auth=auth) as client:
            await scene(client)


def main() -> int:
    """Plays the scenario that the environment names. Exit code: 0 when it was played to its end, 1 if not."""
    scenario, version = os.environ["MCP_CONFORMANCE_SCENARIO"], os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"]
    import anyio

    anyio.run(play, scenario, version, sys.argv[-1])
    print(DONE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
