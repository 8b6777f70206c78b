"""The privileges of the server's role."""

from collections.abc import Iterator
from functools import partial

import pytest

from servers.postgres.engine.link import open_link
from servers.postgres.engine.rights import Rights, check_rights, read_rights
from servers.postgres.engine.target import parse_target
from tests.servers.postgres.databases import Database
from tests.servers.postgres.engines import LIMITS, soon


@pytest.fixture
def role(database: Database) -> Iterator[str]:
    """A role for one test."""
    name = f"role_of_{database.name}"
    database.run(f"CREATE ROLE {name} LOGIN")
    yield name
    database.run(f"DROP OWNED BY {name}; DROP ROLE {name}")


async def find_rights(url: str) -> Rights:
    link = await open_link(parse_target(url, False), LIMITS)
    rights = await read_rights(partial(link.ask, deadline=soon()))
    link.close()
    return rights


async def test_reader_and_writer_are_accepted_and_a_superuser_refused(sample: Database) -> None:
    reader, writer, superuser = [
        await find_rights(url) for url in (sample.reader, sample.writer, sample.server.url(sample.name))
    ]
    assert reader == Rights("reader", False, (), (), False)
    assert writer.writes
    for rights in (reader, writer):
        check_rights(rights, "shop")
    with pytest.raises(ValueError, match=r"shop: the role 'postgres' may do everything.*--allow-privileged"):
        check_rights(superuser, "shop")


@pytest.mark.parametrize("power", ["pg_execute_server_program", "pg_signal_backend", "postgres"])
async def test_a_role_with_inherited_privileges_is_refused(database: Database, role: str, power: str) -> None:
    database.run(f"CREATE ROLE {role}_between NOLOGIN IN ROLE {power}; GRANT {role}_between TO {role}")
    rights = await find_rights(database.server.url(database.name, role))
    database.run(f"DROP ROLE {role}_between")
    with pytest.raises(ValueError, match=power):
        check_rights(rights, "shop")


async def test_role_attributes_are_detected(database: Database, role: str) -> None:
    database.run(f"ALTER ROLE {role} CREATEDB BYPASSRLS")
    rights = await find_rights(database.server.url(database.name, role))
    assert rights.attributes == ("BYPASSRLS", "CREATEDB")
