"""Clients that are not the official Python SDK 2.x go through the tables of a PostgreSQL database."""

import json
from pathlib import Path
from uuid import uuid4

import pytest

from tests.checks.interop.others.environments import PEERS
from tests.checks.interop.others.test_others import NEVER, drive, version_of
from tests.checks.interop.peers import ROOT, TOKEN, HttpServers, command
from tests.npm import Unavailable
from tests.servers.postgres.databases import Database

pytestmark = [
    pytest.mark.timeout(900),  # the first one may have to build an environment
]

TRANSPORTS = ("stdio", "http+token")
ROWS = ("describes every table", "reads pages to the end", "finds a row", "table that changes is heard of")


def columns() -> list[tuple[str, str, str]]:
    return [
        (name, transport, mode)
        for name in ("sdk1", "ts1", "ts2")
        for transport in TRANSPORTS
        for mode in PEERS[name].modes
        if (transport, mode) not in NEVER
    ]


@pytest.mark.parametrize(("peer", "transport", "mode"), columns())
def test_postgres_is_explored(
    peer: str, transport: str, mode: str, folder: Path, postgres: Database, http_servers: HttpServers, tmp_path: Path
) -> None:
    try:
        driver = PEERS[peer].command()
    except Unavailable as error:
        pytest.skip(str(error))
    if transport == "stdio":
        reached: dict[str, object] = {"command": command("postgres", folder), "cwd": str(ROOT)}
    else:
        reached = {"url": http_servers.url("postgres", TOKEN), "token": TOKEN}
    task = {
        "era": mode,
        "version": version_of(mode),
        "transport": transport,
        "servers": {"postgres": reached},
        "folder": str(folder),
        "site": "",
        "key": uuid4().hex[:12],
        "errors": str(tmp_path / "stderr"),
    }
    assert drive([*driver, json.dumps(task)]) == dict.fromkeys(ROWS, "ok")
