"""What a pooler makes of connections, as the server finds out when it starts."""

import pytest

from servers.postgres.database import PostgresDatabase
from servers.postgres.engine.sharing import NoTransactionsError
from servers.postgres.engine.target import parse_target
from tests.pgbouncer import pooling
from tests.postgres_server import PostgresServer
from tests.servers.postgres.databases import Database
from tests.servers.postgres.engines import LIMITS
from tests.servers.postgres.serving import command, inside
from tests.wire import Wire


async def find_sharing(url: str) -> bool:
    database = PostgresDatabase(parse_target(url, False), LIMITS, 1)
    await database.find_sharing()
    return database.is_shared


async def test_a_connection_without_a_pooler_is_not_shared(postgres: PostgresServer) -> None:
    assert not await find_sharing(postgres.url())


@pytest.mark.parametrize(("mode", "shares"), [("session", False), ("transaction", True)])
async def test_a_pooler_shares_connections_between_transactions(
    postgres: PostgresServer, mode: str, shares: bool
) -> None:
    with pooling(postgres, mode) as pooler:
        assert await find_sharing(pooler.url()) == shares


async def test_one_connection_is_shared_by_all(postgres: PostgresServer) -> None:
    with pooling(postgres, "transaction", size=1) as pooler:
        assert await find_sharing(pooler.url())


async def test_what_the_operator_says_is_believed(postgres: PostgresServer) -> None:
    assert await find_sharing(f"{postgres.url()}&pgbouncer=true")


async def test_a_pooler_that_carries_no_transactions_is_refused_at_the_start(sample: Database) -> None:
    with pooling(sample.server, "statement") as pooler:
        with pytest.raises(NoTransactionsError):
            await find_sharing(pooler.url())
        async with Wire(command(pooler.url(sample.name, "reader"))) as wire:
            assert await wire.wait() != 0
    (line,) = wire.stderr.splitlines()
    assert "pool_mode" in line


async def test_triggers_that_nobody_would_hear_are_said_to_be_none(
    sample: Database, caplog: pytest.LogCaptureFixture
) -> None:
    with pooling(sample.server, "transaction") as pooler:
        async with inside("--allow-write", "--watch-triggers", pooler.url(sample.name, "owner")):
            pass
    assert "--watch-triggers" in caplog.text
