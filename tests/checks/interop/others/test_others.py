"""Each row of the matrix with every client that is not ours: over every transport and in every era that it speaks.

One test is one column: a driver in the client's own language goes through all its rows and prints what became of
each; see rows.py and drive_typescript.mjs. Where an environment can't be built the tests are skipped and say why;
under CI=true they fail.
"""

import json
import os
import signal
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import product
from pathlib import Path

import pytest

from tests.checks.interop.conftest import Record
from tests.checks.interop.others.environments import OLDER, PEERS
from tests.checks.interop.peers import NEWEST_HANDSHAKE, ROOT, STATELESS, TOKEN, HttpServers, command

pytestmark = pytest.mark.timeout(900)  # the first one may have to build an environment

SERVERS = ("filesystem", "sqlite", "bench", "everything", "fetch", "prompts")
RUN_SECONDS = 400.0
NOT_REACHED = "the driver did not come to this row"
SILENT = "server has no complaints"

TASKS = ("task is followed", "task asks", "task asks twice", "task fails", "task is cancelled")
"""Rows for those who have the tasks of 2025-11-25: the official SDKs had them up to their 1.x."""
HAVE_TASKS = ("sdk1", "ts1")
ROWS = (
    "opens", "ping", "refuses a wrong token", "lists tools", "text result", "data result", "data that is no object",
    "every kind of content", "long result", "argument in a header", "failure is a result",
    "unknown tool is an error", "lists resources", "long list in pages", "lists templates", "reads a file",
    "reads bytes", "reads by a template", "changed file is heard of", "watched resource changes",
    "list of resources changes", "list of tools changes", "list of prompts changes", "progress in order",
    "burst of progress", "cancelled call is stopped", "log messages", "broken stream", *TASKS, "form is filled in",
    "form with defaults", "form with choices", "two forms in a row", "two forms at once", "page is visited",
    "model is asked", "roots are asked for", "lists prompts", "renders a prompt", "prompt asks first",
    "completes a prompt", "completes a template", "asks a database", "reads a row", "changed table is heard of",
    "reads a web page", "reads an image of the web", "renders a file", "completes for a file",
    "new file is a prompt", SILENT,
)  # fmt: skip
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


def holes_of(peer: str, transport: str) -> set[str]:
    """The rows that may fail."""
    return {row for of, over, row in HOLES if (of, over) == (peer, transport)}


def columns(peers: Iterable[str] = PEERS) -> list[tuple[str, str, str]]:
    """Every peer over each of its transports in each of its modes."""
    found = []
    for name in peers:
        every = product(PEERS[name].transports, PEERS[name].modes)
        found += [(name, *column) for column in every if column not in NEVER]
    return found


def require(peer: str) -> list[str]:
    """How its driver is run. Where its environment can't be built the test is skipped, or fails under CI=true."""
    return PEERS[peer].command()


def reach(server: str, transport: str, folder: Path, http_servers: HttpServers) -> dict[str, object]:
    """How a driver is told to reach a server."""
    if transport == "stdio":
        return {"command": command(server, folder), "cwd": str(ROOT)}
    token = TOKEN if transport.endswith("+token") else None
    url = http_servers.url(server, token)
    if transport == "websocket":  # neither of its clients can send a token
        return {"url": url.replace("http:", "ws:")}
    return {"url": f"{url.removesuffix('mcp')}sse" if transport == "sse+token" else url, "token": token}


def task_of(mode: str, transport: str, servers: Mapping[str, object], **given: object) -> str:
    """What a driver is told; `given` are the folder, the site, the key and the file of errors."""
    task = {"era": mode, "version": version_of(mode), "transport": transport, "servers": servers}
    return json.dumps(task | {name: str(value) for name, value in given.items()})


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


@pytest.mark.parametrize(("peer", "transport", "mode"), columns())
def test_a_client_uses_every_feature(
    peer: str,
    transport: str,
    mode: str,
    folder: Path,
    site: str,
    key: str,
    file: Path,
    http_servers: HttpServers,
    tmp_path: Path,
    record: Record,
) -> None:
    errors = tmp_path / "stderr"
    servers = {server: reach(server, transport, folder, http_servers) for server in SERVERS}
    task = task_of(mode, transport, servers, folder=folder, site=site, key=key, errors=errors)
    found = drive([*require(peer), task])
    file.with_suffix(".new").unlink(missing_ok=True)
    if transport == "stdio":
        found[SILENT] = (errors.read_text()[-4000:] if errors.exists() else NOT_REACHED) or "ok"
    assert not found.keys() - {*ROWS, "driver"}
    not_reached = f"{NOT_REACHED}: {found.get('driver', 'it ended before')}"
    outcomes = {row: found.get(row, not_reached) for row in rows_of(peer, transport, mode)}
    record(peer, (transport, mode), outcomes)
    holes = holes_of(peer, transport)
    assert {row: outcome for row, outcome in outcomes.items() if outcome != "ok" and row not in holes} == {}
