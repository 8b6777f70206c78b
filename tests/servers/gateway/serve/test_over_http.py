"""What each mount is given of the options and of the configuration."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from servers.bundle.commands.serve import main
from servers.gateway.serve import choice, over_http
from servers.gateway.serve.gateway_server import wait_until_settled

CONFIGURATION = """
max-seconds: 4
max-client-calls: 3
max-sessions: 7
trace: {folder}/trace
audit: {folder}/audit
join: [sqlite, prompts]
servers:
  sqlite: {{demo: true, scopes: {{a: [read_query]}}, principal: {{ada: {{databases: [demo]}}}}}}
  prompts: {{}}
  fetch: {{}}
"""


def test_options_and_rules_reach_every_mount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Any] = []
    limited: list[tuple[str, float]] = []

    def run_program(_: str, run: "partial[Any]", **__: Any) -> int:
        started.extend(run.args)
        return 7

    monkeypatch.setattr(over_http, "run_program", run_program)
    monkeypatch.setattr(over_http, "set_up_process", lambda *_: None)
    monkeypatch.setattr(over_http, "log_commands", lambda *_: None)
    monkeypatch.setattr(over_http, "stores_factory", lambda _: str.upper)
    monkeypatch.setattr(
        choice, "set_limits", lambda app, options: limited.append((app.implementation.name, options.max_seconds))
    )
    (tmp_path / "servers.yaml").write_text(CONFIGURATION.format(folder=tmp_path))
    assert main(["--config", str(tmp_path / "servers.yaml")]) == 7
    mounts, http, *_ = started
    assert [mount.path for mount in mounts] == ["/sqlite/mcp", "/prompts/mcp", "/fetch/mcp", "/mcp"]
    assert limited == [("sqlite", 4), ("prompts", 4), ("fetch", 4)]
    assert (http.limits.clients.calls, http.limits.sessions.sessions) == (3, 7)
    sqlite, *others, joined = mounts
    assert [(len(mount.extensions), mount.is_only_server) for mount in mounts] == [
        (3, False),
        *[(1, False)] * 2,
        (2, False),
    ]
    assert None not in {mount.trace for mount in mounts}
    assert [mount.stores for mount in mounts] == ["SQLITE", "PROMPTS", "FETCH", "JOINED"]
    assert http.audit is not None
    # The joined servers list nothing before they are open, and the scopes of the one are those of all.
    members = [mount.supervised for mount in (sqlite, others[0])]
    assert (joined.before_opening.func, joined.before_opening.args) == (wait_until_settled, (members,))
    assert joined.scopes.args == ([sqlite, others[0]],)
    assert [mount.before_opening for mount in (sqlite, *others)] == [None] * 3
