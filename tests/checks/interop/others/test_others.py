"""Each row of the matrix with clients that are not the official Python SDK 2.x: every transport and era they speak.

A driver in the client's own language goes through all rows of one column and prints what became of each; see rows.py
and drive_typescript.mjs. Where an environment can't be built the tests are skipped and say why; under CI=true they
fail.
"""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from uuid import uuid4

import pytest

from tests.checks.interop.others.environments import OLDER, PEERS
from tests.checks.interop.peers import NEWEST_HANDSHAKE, ROOT, STATELESS, TOKEN, HttpServers, command
from tests.npm import Unavailable

pytestmark = [
    pytest.mark.timeout(900),  # the first one may have to build an environment
]

SERVERS = ("filesystem", "sqlite", "bench", "everything", "fetch", "prompts")
RUN_SECONDS = 400.0
NOT_REACHED = "the driver did not come to this row"
SILENT = "server has no complaints"

TASKS = ("task is followed", "task asks", "task asks twice", "task fails", "task is cancelled")
"""Rows for those who have the tasks of 2025-11-25: the official SDKs had them up to their 1.x."""
HAVE_TASKS = ("sdk1", "ts1")
ROWS = (
    "opens",
    "ping",
    "refuses a wrong token",
    "lists tools",
    "text result",
    "data result",
    "data that is no object",
    "every kind of content",
    "long result",
    "argument in a header",
    "failure is a result",
    "unknown tool is an error",
    "lists resources",
    "long list in pages",
    "lists templates",
    "reads a file",
    "reads bytes",
    "reads by a template",
    "changed file is heard of",
    "watched resource changes",
    "list of resources changes",
    "list of tools changes",
    "list of prompts changes",
    "progress in order",
    "burst of progress",
    "cancelled call is stopped",
    "log messages",
    "broken stream",
    *TASKS,
    "form is filled in",
    "form with defaults",
    "form with choices",
    "two forms in a row",
    "two forms at once",
    "page is visited",
    "model is asked",
    "roots are asked for",
    "lists prompts",
    "renders a prompt",
    "prompt asks first",
    "completes a prompt",
    "completes a template",
    "asks a database",
    "reads a row",
    "changed table is heard of",
    "reads a web page",
    "reads an image of the web",
    "renders a file",
    "completes for a file",
    "new file is a prompt",
    SILENT,
)
ONLY = {
    "ping": lambda _transport, mode: mode in ("legacy", *OLDER),
    "refuses a wrong token": lambda transport, _mode: transport.endswith("+token"),
    SILENT: lambda transport, _mode: transport == "stdio",  # over HTTP the end of the run asks
}
NEVER = {("sse+token", "auto"), ("sse+token", STATELESS)}
"""2026-07-28 has no such transport."""
SINCE = {  # row -> the first version that has what it needs
    "data result": "2025-06-18",
    "every kind of content": "2025-06-18",
    "form is filled in": "2025-06-18",
    "form with defaults": "2025-06-18",
    "form with choices": "2025-11-25",  # several at once
    "two forms in a row": "2025-06-18",
    "two forms at once": "2025-06-18",
    "prompt asks first": "2025-06-18",
    "page is visited": "2025-11-25",
}

# (peer, transport, row) -> why it can't work. Whether it happens to work is a matter of how the bytes come.
HOLES = {
    (peer, transport, row): (
        "modelcontextprotocol/typescript-sdk#2580: _onnotification of its Protocol puts handlers off by "
        "`Promise.resolve().then(...)`, but _onresponse drops the progress handler at once "
        "(`this._progressHandlers.delete(messageId)`): progress that is read together with the answer is lost, "
        "which on a busy machine a report of 50 ms before is as well"
    )
    for peer in ("ts1", "ts2")
    for transport in ("stdio", "sse+token", "websocket")
    for row in ("burst of progress", "progress in order")
}


def version_of(mode: str) -> str:
    return {"legacy": NEWEST_HANDSHAKE, "auto": STATELESS}.get(mode, mode)


def rows_of(peer: str, transport: str, mode: str) -> list[str]:
    known = (
        row for row in ROWS if SINCE.get(row, "") <= version_of(mode) and (row not in TASKS or peer in HAVE_TASKS)
    )
    return [row for row in known if ONLY.get(row, lambda *_: True)(transport, mode)]


def cells() -> Iterator[object]:
    for name, peer in PEERS.items():
        for transport in peer.transports:
            for mode in (mode for mode in peer.modes if (transport, mode) not in NEVER):
                for row in rows_of(name, transport, mode):
                    why = HOLES.get((name, transport, row))
                    marks = [pytest.mark.xfail(reason=why, strict=False)] if why else []
                    column = f"{name}-{transport}-{mode}"
                    yield pytest.param(name, transport, mode, row, id=f"{column}-{row}", marks=marks)


Driven = Callable[[str, str, str], dict[str, str]]


@pytest.fixture(scope="session")
def driven(folder: Path, site: str, http_servers: HttpServers, tmp_path_factory: pytest.TempPathFactory) -> Driven:
    """What a driver says of each row, for a peer, a transport and a mode; each is run once."""

    @cache
    def environment(name: str) -> list[str] | Unavailable:
        try:
            return PEERS[name].command()
        except Unavailable as error:
            return error

    @cache
    def run(name: str, transport: str, mode: str) -> dict[str, str]:
        driver = environment(name)
        if isinstance(driver, Unavailable):
            if os.environ.get("CI") == "true":
                pytest.fail(str(driver))
            pytest.skip(str(driver))
        key = f"k{uuid4().hex[:12]}"
        errors = tmp_path_factory.mktemp("errors") / "stderr"
        file, new = folder / f"{key}.txt", folder / f"{key}.new"
        file.write_text("before\n")
        task = {
            "era": mode,
            "version": version_of(mode),
            "transport": transport,
            "servers": {server: reach(server, transport) for server in SERVERS},
            "folder": str(folder),
            "site": site,
            "key": key,
            "errors": str(errors),
        }
        try:
            found = drive([*driver, json.dumps(task)])
        finally:
            for path in (file, new):
                path.unlink(missing_ok=True)
        if transport == "stdio":
            found[SILENT] = (errors.read_text()[-4000:] if errors.exists() else NOT_REACHED) or "ok"
        assert not found.keys() - {*ROWS, "driver"}
        return found

    def reach(server: str, transport: str) -> dict[str, object]:
        if transport == "stdio":
            return {"command": command(server, folder), "cwd": str(ROOT)}
        if transport == "websocket":  # neither of its clients can send a token
            return {"url": http_servers.url(server, None).replace("http:", "ws:")}
        url = http_servers.url(server, TOKEN)
        if transport == "sse+token":
            url = f"{url.removesuffix('mcp')}sse"
        return {"url": url, "token": TOKEN}

    return run


def drive(arguments: list[str]) -> dict[str, str]:
    """Runs a driver, within a limit, and reads what it prints."""
    env = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    env = {name: value for name, value in env.items() if not name.startswith(("MCP_", "FASTMCP_", "PYTHON"))}
    process = subprocess.Popen(
        arguments, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        said, complaints = process.communicate(timeout=RUN_SECONDS)
    except subprocess.TimeoutExpired:
        return {"driver": f"it ran for longer than {RUN_SECONDS:g} seconds"}
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    try:
        return json.loads(said)
    except ValueError:
        return {"driver": f"it ended with {process.returncode}: {said[-2000:]}{complaints[-4000:]}"}


@pytest.mark.parametrize(("peer", "transport", "mode", "row"), list(cells()))
def test_row(driven: Driven, peer: str, transport: str, mode: str, row: str) -> None:
    found = driven(peer, transport, mode)
    outcome = found.get(row) or f"{NOT_REACHED}: {found.get('driver', 'it ended before')}"
    assert outcome == "ok", outcome
