"""Every client that is not ours goes through the tables of a PostgreSQL database."""

from pathlib import Path

import pytest

from tests.checks.interop.conftest import Record
from tests.checks.interop.others.test_others import columns, drive, reach, require, task_of
from tests.checks.interop.peers import HttpServers
from tests.servers.postgres.databases import Database

pytestmark = pytest.mark.timeout(900)  # the first one may have to build an environment

ROWS = ("describes every table", "reads pages to the end", "finds a row", "table that changes is heard of")
COLUMNS = [one for one in columns(("sdk2", "sdk1", "ts1", "ts2")) if one[1] in ("stdio", "http", "http+token")]


@pytest.mark.parametrize(("peer", "transport", "mode"), COLUMNS)
def test_postgres_is_explored(
    peer: str,
    transport: str,
    mode: str,
    folder: Path,
    postgres: Database,
    key: str,
    http_servers: HttpServers,
    tmp_path: Path,
    record: Record,
) -> None:
    servers = {"postgres": reach("postgres", transport, folder, http_servers)}
    task = task_of(mode, transport, servers, folder=folder, site="", key=key, errors=tmp_path / "stderr")
    found = drive([*require(peer), task])
    record(peer, (transport, mode), found)
    assert found == dict.fromkeys(ROWS, "ok")
