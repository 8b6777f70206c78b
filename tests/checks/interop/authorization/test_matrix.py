"""Clients log in to protected servers with the help of a real authorization server, and are refused where they should
be. One test is one client at one server."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.checks.interop.authorization.authority import Authority
from tests.checks.interop.authorization.certificates import Certificates
from tests.checks.interop.authorization.matrix import Column, Found, drive
from tests.checks.interop.authorization.peers import CLIENTS, SERVERS

pytestmark = [pytest.mark.timeout(600)]  # the first one may have to build an environment

BUNDLE_PACKAGE = {"ours", "ours-asks"}
REFERENCE = Column("typescript", "typescript")
"""Neither is ours: where it fails too, it is not for us."""

Record = Callable[[Column, Found], None]


def columns() -> list[object]:
    every = [Column(client, server) for server in SERVERS for client in CLIENTS]
    tried = [column for column in every if BUNDLE_PACKAGE & {column.client, column.server} or column == REFERENCE]
    return [pytest.param(column, id=f"{column.client}-{column.server}") for column in tried]


@pytest.mark.parametrize("column", columns())
def test_only_authorized_clients_are_admitted(
    column: Column, authority: Authority, trusted: Certificates, tmp_path: Path, record: Record
) -> None:
    found = drive(column, authority, trusted, tmp_path)
    record(column, found)
    assert found == dict.fromkeys(column.rows, "ok")
