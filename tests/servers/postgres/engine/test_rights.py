"""What the role of the server may do."""

from collections.abc import Iterator
from functools import partial

import pytest

from servers.postgres.engine.link import open_link
from servers.postgres.engine.rights import Rights, check_rights, read_rights
from servers.postgres.engine.target import parse_target
from tests.servers.postgres.databases import Database
from tests.servers.postgres.engines import LIMITS, soon

pytestmark = pytest.mark.slow


@pytest.fixture
def role(database: Database) -> Iterator[str]:
    """A role of this test alone."""
    name = f"role_of_{database.name}"
    database.run(f"CREATE ROLE {name} LOGIN")
    yield name
    database.run(f"DROP OWNED BY {name}; DROP ROLE {name}")


async def find_rights(url: str) -> Rights:
    link = await open_link(parse_target(url, False), LIMITS)
    rights = await read_rights(partial(link.ask, deadline=soon()))
    link.close()
    return rights


async def test_a_reader_has_no_more_than_it_needs(database: Database) -> None:
    rights = await find_rights(database.reader)
    assert rights == Rights("reader", False, (), (), False)
    check_rights(rights, "shop")


async def test_a_writer_may_write(database: Database) -> None:
    rights = await find_rights(database.writer)
    assert rights.writes
    check_rights(rights, "shop")


async def test_a_superuser_is_refused(database: Database) -> None:
    rights = await find_rights(database.server.url(database.name))
    with pytest.raises(ValueError, match=r"shop: the role 'postgres' may do everything.*--allow-privileged"):
        check_rights(rights, "shop")


@pytest.mark.parametrize("power", ["pg_execute_server_program", "pg_signal_backend", "postgres"])
async def test_a_role_with_powers_by_way_of_another_is_refused(database: Database, role: str, power: str) -> None:
    database.run(f"CREATE ROLE {role}_between NOLOGIN IN ROLE {power}; GRANT {role}_between TO {role}")
    rights = await find_rights(database.server.url(database.name, role))
    database.run(f"DROP ROLE {role}_between")
    with pytest.raises(ValueError, match=power):
        check_rights(rights, "shop")


async def test_attributes_are_told(database: Database, role: str) -> None:
    database.run(f"ALTER ROLE {role} CREATEDB BYPASSRLS")
    rights = await find_rights(database.server.url(database.name, role))
    assert rights.attributes == ("BYPASSRLS", "CREATEDB")
