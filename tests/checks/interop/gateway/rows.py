"""What our client asks of a server through a gateway, and what has to come of it: one function for each row."""

import base64
from collections.abc import Awaitable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio

from servers.everything.features.answers import PNG
from shared.client.connection.changes import Change
from shared.client.options import ClientOptions
from shared.concurrency import background
from shared.errors import PeerError
from shared.protocol.types.client import ElicitResult
from shared.protocol.types.elicitation import ElicitForm, ElicitUrl
from shared.protocol.types.prompts import PromptReference, ResourceReference
from tests.checks.interop.gateway.upstream import EXTRA_PROMPT, EXTRA_RESOURCE, EXTRA_TOOL, WATCHED
from tests.checks.interop.others.driving import FIELDS
from tests.checks.interop.servers.rows import (
    MODEL,
    Ears,
    Row,
    Talk,
    calls,
    data,
    fails,
    lists,
    prompts,
    reads,
    reads_bytes,
    reports,
)

NOT_FOUND = -32002
"""The code for a resource that does not exist, before 2026-07-28."""
FAILURES = ("protocol", "crash", "missing_resource")
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
LARGE = 450_000
"""Bytes of an answer."""
LEVELS = ["warning", "error", "critical", "alert", "emergency"]
FORM = "test_input_required_result_elicitation"
FORMS_IN_A_ROW = "test_input_required_result_multi_round"
AT_ONCE = "test_input_required_result_multiple_inputs"
META = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "example.com/told": ["ø", 1]}


def options(version: str, ears: Ears) -> ClientOptions:
    """Those of a client that speaks this version alone, and answers whatever a server may ask."""

    async def visit(asked: ElicitUrl) -> ElicitResult:
        return ElicitResult(action="accept" if asked.url.startswith("https://") else "decline")

    given = ears.options("auto")
    given = replace(given, elicit=fill_in, min_version=version, max_version=version, log_level=None)
    return given if version < "2025-11-25" else replace(given, elicit_url=visit)


async def fill_in(form: ElicitForm) -> ElicitResult:
    """What the user says to a form: something in each field."""
    content = {name: FIELDS.get(name, "Ada") for name in form.requested_schema.get("properties", ())}
    return ElicitResult(action="accept", content=content)


def opens(version: str) -> Row:
    """Client and server settle on the version."""

    async def row(talk: Talk) -> None:
        assert talk.client.server.version == version

    return row


def together(*rows: Row) -> Row:
    """One row after the other."""

    async def row(talk: Talk) -> None:
        for one in rows:
            await one(talk)

    return row


async def _pings(talk: Talk) -> None:
    await talk.client.ping()


async def _every_content(talk: Talk) -> None:
    result = await talk.call("all_content")
    kinds = [block.type for block in result.content]
    assert kinds == ["text", "text", "image", "audio", "resource", "resource", "resource_link"]


async def meta(talk: Talk) -> None:
    """`_meta` passes, there and back."""
    params = {"name": "show_meta", "arguments": {}, "_meta": META}
    shown = (await talk.client.request("tools/call", params))["structuredContent"]
    assert META.items() <= shown.items(), shown
    result = await talk.client.request("tools/call", {"name": "result_with_meta", "arguments": {}})
    assert result["_meta"]["example.com/answered-by"] == "everything", result


async def cancels(talk: Talk) -> None:
    """A call that is cancelled is cancelled at the server."""
    stopped = Path(talk.folder) / "stopped"
    stopped.unlink(missing_ok=True)
    began = anyio.Event()

    async def hold() -> None:
        await talk.call("hold", {"file": str(stopped)}, on_progress=lambda *_: began.set())

    async with background() as tasks:
        tasks.start_soon(hold)
        await began.wait()
        assert not stopped.exists()
    while not stopped.exists():
        await anyio.sleep(0.01)


async def tasks(talk: Talk) -> None:
    """Two tasks at once: the one asks and comes to its result, the other says how far it is and is cancelled."""
    stopped = Path(talk.folder) / "stopped"
    stopped.unlink(missing_ok=True)
    greeting, holding = [
        await talk.client.start_tool("greet_as_task"),
        await talk.client.start_tool("hold_as_task", {"file": str(stopped)}),
    ]
    assert None not in (greeting.id, holding.id), "no tasks"
    while (state := await holding.state()).message != "holding, 50%":
        assert state.status == "working", state
        await anyio.sleep(0.01)
    await holding.cancel()
    assert (await holding.state()).status == "cancelled"
    assert (await greeting.result()).text == "Hello, Ada!"
    while not stopped.exists():
        await anyio.sleep(0.01)


async def no_tasks(talk: Talk) -> None:
    """A client of a version without tasks is told of none."""
    assert not talk.client.server.can("tasks")
    assert "execution" not in str(await talk.client.request("tools/list"))


async def subscribes(talk: Talk) -> None:
    """A resource changes, which is heard of, twice; then no longer."""
    file = Path(talk.folder) / "watched"
    async with talk.client.changes([WATCHED], lists=False) as heard:
        assert not heard.refused, heard.refused
        for _ in range(2):
            with file.open("a") as more:
                more.write("changed\n")
            assert await anext(heard) == Change("resource", WATCHED)


async def lists_change(talk: Talk) -> None:
    """What is new in each list is told, and found there."""
    kinds = {"tools": ("name", EXTRA_TOOL), "prompts": ("name", EXTRA_PROMPT), "resources": ("uri", EXTRA_RESOURCE)}
    async with talk.client.changes() as heard:
        for kind, (key, name) in kinds.items():
            for there in (True, False):
                await _list_changes(talk, kind, key, name, there)
                while (change := await anext(heard)) != Change(kind):  # type: ignore[arg-type]
                    assert change.kind != "missed", change


async def _list_changes(talk: Talk, kind: str, key: str, name: str, there: bool) -> None:
    file = Path(talk.folder) / kind
    if there:
        file.touch()
    else:
        file.unlink()
    # Sessions with processes of their own see it one after the other.
    while (name in await _listed(talk, kind, key)) is not there:
        await anyio.sleep(0.01)


async def _listed(talk: Talk, kind: str, key: str) -> list[str]:
    names: list[str] = []
    params: dict[str, Any] = {}
    while True:
        page = await talk.client.request(f"{kind}/list", params)
        names += [one[key] for one in page[kind]]
        if "nextCursor" not in page:
            return names
        params = {"cursor": page["nextCursor"]}


async def logs(talk: Talk) -> None:
    """From the level that was asked for on everything is told, and nothing else."""
    await talk.client.set_log_level("warning")
    talk.ears.logs.clear()
    await talk.call("test_logging_tool")
    while len(talk.ears.logs) < len(LEVELS):  # over HTTP they may come by another stream than the answer
        await anyio.sleep(0.01)
    assert [level for level, _ in talk.ears.logs] == LEVELS, talk.ears.logs
    assert talk.ears.logs[0][1] == {"message": "a message at the level warning"}


async def _completes_a_template(talk: Talk) -> None:
    found = await talk.client.complete(ResourceReference(uri="test://template/{id}/data"), "id", "4")
    assert found.values == ["456"]


async def _completes_a_prompt(talk: Talk) -> None:
    reference = PromptReference(name="test_prompt_with_arguments")
    found = await talk.client.complete(reference, "arg1", "test", {"arg2": "one"})
    assert found.values == ["test1", "test2", "testing"]


async def large(talk: Talk) -> None:
    """A large answer comes whole, and so does a large argument with it."""
    result = await talk.call("large_answer", {"size": LARGE})
    assert len(result.text) == LARGE, len(result.text)
    said = "ø" * 200_000
    assert (await talk.call("echo", {"text": said})).text == said


async def errors(talk: Talk) -> None:
    """Errors have their code, their words and their data."""
    await fails("fail", {"how": "tool"}, "the tool could not do it")(talk)
    own, crash, missing = [await _refusal(talk.call("fail", {"how": how})) for how in FAILURES]
    assert (own.code, own.message, own.data) == (-31_000, "an error of this server's own", {"reason": "asked for"})
    assert crash.code == INTERNAL_ERROR
    not_found = INVALID_PARAMS if talk.client.stateless else NOT_FOUND
    assert missing.code == not_found
    nowhere = await _refusal(talk.client.read_resource("test://there-is-none"))
    assert (nowhere.code, nowhere.data) == (not_found, {"uri": "test://there-is-none"})


async def unknown(talk: Talk) -> None:
    """A tool that there is not is refused by name."""
    refusal = await _refusal(talk.call("there_is_none"))
    assert (refusal.code, "there_is_none" in refusal.message) == (INVALID_PARAMS, True), refusal


async def no_visits(talk: Talk) -> None:
    """A client that can't be asked to visit a page is not asked, and the call says so."""
    refusal = await _refusal(talk.call("elicit_visit"))
    assert "elicitation" in f"{refusal.message} {refusal.data}", refusal


async def _refusal(asked: Awaitable[object]) -> PeerError:
    try:
        result = await asked
    except PeerError as error:
        return error
    raise AssertionError(f"no error: {result}")


async def _is_there(talk: Talk) -> None:
    """On a machine that is busy, a server of several may come after the others."""
    while "hold" not in await _listed(talk, "tools", "name"):
        await anyio.sleep(0.05)


BASICS = together(
    _pings,
    _is_there,
    lists(
        tools={"echo", "hold"}, resources={"static-text"}, templates={"template-data"}, prompts={"test_simple_prompt"}
    ),
    calls("test_simple_text", {}, "This is a simple text response"),
    data("structured_answer", {"city": "Oslo"}, {"city": "Oslo", "degrees": 21.5, "conditions": ["sunny", "calm"]}),
    _every_content,
    reads("test://static-text", "This is the content"),
    reads_bytes("test://static-binary", base64.b64encode(PNG).decode()),
    reads("test://template/5/data", "Data for ID: 5"),
    prompts("test_prompt_with_arguments", {"arg1": "a", "arg2": "ø"}, "arg1='a', arg2='ø'"),
)

ROWS: dict[str, Row] = {
    "basics": BASICS,
    "meta": meta,
    "progress": reports("long_call", {"seconds": 0.1, "steps": 5}, 5),
    "cancel": cancels,
    "subscribe": subscribes,
    "sampling": calls("test_sampling", {"prompt": "What rhymes with snake?"}, MODEL),
    "form": together(calls(FORM, {}, "Hello, Ada!"), calls(FORMS_IN_A_ROW, {}, "accept, accept")),
    "at once": calls(AT_ONCE, {}, "lake Ada, with 2 roots"),
    "asking prompt": prompts("test_input_required_result_prompt", {}, "in this context: Ada"),
    "url": calls("elicit_visit", {}, "The user has opened the page."),
    "roots": calls("show_roots", {}, "file:///home"),
    "logging": logs,
    "completion": together(_completes_a_prompt, _completes_a_template),
    "lists": lists_change,
    "large": large,
    "error": together(errors, unknown),
    "tasks": tasks,
}
"""The rows by their names, in their order."""

EXCLUDED = {
    ("2025-06-18", "url"): "elicitation has no mode `url` before 2025-11-25",
    ("2025-06-18", "tasks"): "there are no tasks before 2025-11-25",
}
"""Versions and rows for which there is no message in that version's schema, and why."""

WITHOUT: dict[str, Row] = {"url": no_visits, "tasks": no_tasks}
"""What holds in place of such a row."""
