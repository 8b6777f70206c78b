"""The official clients and ours at three replicas of each server, behind nginx, which sends each request to another.

What they go through at one process they go through here.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from anyio import to_thread

from shared.client.connect import connect
from tests.checks.interop.gateway.columns import NAMES, OPENS, VERSIONS, Column
from tests.checks.interop.gateway.rows import options
from tests.checks.interop.gateway.ways import upstream
from tests.checks.interop.others.test_others import SERVERS, SILENT, drive, holes_of, require, rows_of, task_of
from tests.checks.interop.peers import STATELESS, TOKEN, command
from tests.checks.interop.servers.rows import Ears, Talk, outcome
from tests.checks.replicas.serving import replicated

ROW_SECONDS = 30.0
TRANSPORT = "http+token"
IN_ONE_PROCESS = {"list of tools changes", "list of prompts changes"}
"""What the bench server of these rows adds to its own process; that of the rows of our client does so by files."""
CLIENTS = (("sdk1", "legacy"), ("sdk2", "legacy"), ("sdk2", STATELESS), ("ts2", "legacy"), ("ts2", STATELESS))


@pytest.mark.parametrize("version", VERSIONS)
async def test_our_client_uses_every_feature_of_replicas(version: str, tmp_path: Path) -> None:
    found: dict[str, str] = {}
    async with replicated({"/": upstream("new", tmp_path)}, is_silent=False) as base:
        ears = Ears()
        async with connect(f"{base}/mcp", options(version, ears)) as client:
            talk = Talk(client, ears, str(tmp_path), "")
            for name, row in Column("http", version, "new").rows.items():
                found[name] = await outcome(row, talk, ROW_SECONDS)
    assert found == dict.fromkeys(NAMES, "ok")
    assert OPENS in found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def base(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    """The URL of all servers, each beneath its name."""
    commands = {f"/{server}/": command(server, folder) for server in SERVERS}
    commands["/bench/"] += ["--meeting", str(tmp_path_factory.mktemp("meeting"))]
    async with replicated(commands, {"MCP_TOKEN": TOKEN}) as url:
        yield url


@pytest.mark.timeout(900)  # the first one may have to build an environment
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("peer", "mode"), CLIENTS)
async def test_an_official_client_uses_every_feature_of_replicas(
    base: str, peer: str, mode: str, folder: Path, site: str, key: str, tmp_path: Path
) -> None:
    driver = await to_thread.run_sync(require, peer)
    files = [folder / f"{key}.{ending}" for ending in ("txt", "new")]
    files[0].write_text("before\n")
    servers = {server: {"url": f"{base}/{server}/mcp", "token": TOKEN} for server in SERVERS}
    errors = tmp_path / "stderr"
    task = task_of(mode, TRANSPORT, servers, folder=folder, site=site, key=key, errors=errors)
    found = await to_thread.run_sync(drive, [*driver, task])
    for file in files:
        file.unlink(missing_ok=True)
    rows = set(rows_of(peer, TRANSPORT, mode)) - holes_of(peer, TRANSPORT) - IN_ONE_PROCESS - {SILENT}
    wrong = {row: found.get(row, found.get("driver", "not reached")) for row in rows}
    assert {row: outcome for row, outcome in wrong.items() if outcome != "ok"} == {}
