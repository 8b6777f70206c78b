"""Requests answered without a task, even with wrapped handlers."""

from pathlib import Path
from typing import Any

import pytest

from shared import Context, Resource, Run, Server
from shared.auth.policy import Policy, Rules
from shared.extensions.access import access
from shared.extensions.apps import App, apps
from shared.protocol.identity import Principal
from shared.protocol.wire.jsonrpc import Request, Response
from shared.server.extension import Extension
from shared.telemetry.audit import Audit, audit_calls
from shared.telemetry.audit_file import AuditFile
from shared.telemetry.request_spans import trace_calls
from tests.shared.server.peer import server, talking
from tests.wire import with_envelope

LISTS = {"tools/list": "tools", "prompts/list": "prompts", "resources/templates/list": "resourceTemplates"}


def served(*extensions: Extension[Any]) -> Server[Any]:
    app = server(extensions=extensions)

    @app.tool(read_only=True)
    def look() -> str:
        """Look."""
        return "seen"

    @app.prompt()
    def ask() -> str:
        """Ask."""
        return "?"

    @app.resource("memo://{name}", at_once=lambda name: "at once" if name == "quick" else None)
    def memo(name: str) -> str:
        """A memo."""
        return f"{name}, later"

    return app


async def answered_at_once(
    method: str, params: dict[str, Any], log: Path, *, is_guarded: bool
) -> dict[str, Any] | None:
    """The result that exists as soon as the request is received."""
    audit = Audit(AuditFile(log))
    rules = access(Policy("s", Rules()))
    around = [rules, apps(App("ui://page", lambda: "")), audit_calls(audit, "s"), trace_calls("s", over_http=False)]
    async with served(*(around if is_guarded else ())).open() as running:
        connection = running.connect(None, lambda: None)
        connection.receive(Request(1, method, with_envelope(params)))
        answers = [outgoing.message for outgoing in connection.outgoing()]
        await connection.close()
    audit.close()
    return answers[0].result if answers and isinstance(answers[0], Response) else None


GUARDED = pytest.mark.parametrize("is_guarded", [False, True], ids=["alone", "with access, apps, audit and traces"])


@GUARDED
@pytest.mark.parametrize("method", LISTS)
async def test_lists_are_answered_without_a_task(method: str, is_guarded: bool, tmp_path: Path) -> None:
    result = await answered_at_once(method, {}, tmp_path / "audit", is_guarded=is_guarded)
    assert result is not None
    assert len(result[LISTS[method]]) == 1
    assert len((tmp_path / "audit").read_text().splitlines()) == is_guarded


@GUARDED
async def test_a_quick_resource_is_read_without_a_task(is_guarded: bool, tmp_path: Path) -> None:
    async def read(uri: str) -> dict[str, Any] | None:
        return await answered_at_once("resources/read", {"uri": uri}, tmp_path / "audit", is_guarded=is_guarded)

    result = await read("memo://quick")
    assert result is not None
    assert result["contents"][0]["text"] == "at once"
    assert (await read("memo://slow"), await read("ui://page")) == (None, None)


async def test_a_slow_resource_is_read_by_its_function() -> None:
    async with talking(served()) as peer:
        answer = await peer.request("resources/read", {"uri": "memo://slow"})
    assert answer["result"]["contents"][0]["text"] == "slow, later"


async def test_a_list_of_resources_is_watched_before_it_is_read_and_its_cursor_is_for_its_reader() -> None:
    app, log = server(), list[str]()
    app.page_size = 1

    @app.lists_resources
    async def list_memos(_context: Context[Any]) -> list[Resource]:
        log.append("listed")
        return [Resource(uri=f"memo://{number}", name=str(number)) for number in range(3)]

    @app.on_wanted
    async def watch(_run: Run[Any]) -> None:
        log.append("watched")

    async with app.open() as running:
        async with talking(running, principal=Principal("ada")) as ada:
            cursor = (await ada.request("resources/list"))["result"]["nextCursor"]
            assert log == ["watched", "listed"]
            assert "result" in await ada.request("resources/list", {"cursor": cursor})
        async with talking(running, principal=Principal("eve")) as eve:
            assert (await eve.request("resources/list", {"cursor": cursor}))["error"]["code"] == -32602
    assert log.count("watched") == 1
