"""Requests that are answered before a task begins, whatever is around their handlers."""

from pathlib import Path
from typing import Any

import pytest

from shared import Server
from shared.auth.policy import Policy, Rules
from shared.extensions.access import access
from shared.extensions.apps import App, apps
from shared.protocol.wire.jsonrpc import Request, Response
from shared.server.extension import Extension
from shared.telemetry.audit import Audit, audited
from shared.telemetry.audit_file import AuditFile
from shared.telemetry.request_spans import traced
from tests.shared.server.peer import server
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

    @app.resource("memo://{name}")
    def memo(name: str) -> str:
        """A memo."""
        return name

    return app


@pytest.mark.parametrize("method", LISTS)
@pytest.mark.parametrize("is_guarded", [False, True], ids=["alone", "with access, apps, audit and traces"])
async def test_lists_are_answered_at_once(method: str, is_guarded: bool, tmp_path: Path) -> None:
    audit = Audit(AuditFile(tmp_path / "audit"))
    rules = access(Policy("s", Rules()))
    around = [rules, apps(App("ui://page", lambda: "")), audited(audit, "s"), traced("s", over_http=False)]
    async with served(*(around if is_guarded else ())).open() as running:
        connection = running.connect(None, lambda: None)
        connection.take(Request(1, method, with_envelope({})))
        (answer,) = [outgoing.message for outgoing in connection.outgoing()]
        await connection.close()
    audit.close()
    assert isinstance(answer, Response)
    assert len(answer.result[LISTS[method]]) == 1
    assert len((tmp_path / "audit").read_text().splitlines()) == is_guarded
