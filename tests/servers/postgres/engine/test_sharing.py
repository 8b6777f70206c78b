"""Poolers that share connections, detected at the start."""

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


async def detect_sharing(url: str) -> bool:
    database = PostgresDatabase(parse_target(url, False), LIMITS, 1)
    await database.detect_sharing()
    return database.is_shared


async def test_a_connection_without_a_pooler_is_not_shared(postgres: PostgresServer) -> None:
    assert not await detect_sharing(postgres.url())


@pytest.mark.parametrize(("mode", "shares"), [("session", False), ("transaction", True)])
async def test_a_pooler_shares_connections_between_transactions(
    postgres: PostgresServer, mode: str, shares: bool
) -> None:
    with pooling(postgres, mode) as pooler:
        assert await detect_sharing(pooler.url()) == shares


async def test_a_pooler_with_one_connection_is_detected_as_shared(postgres: PostgresServer) -> None:
    with pooling(postgres, "transaction", size=1) as pooler:
        assert await detect_sharing(pooler.url())


async def test_the_pgbouncer_parameter_means_shared(postgres: PostgresServer) -> None:
    assert await detect_sharing(f"{postgres.url()}&pgbouncer=true")


async def test_a_pooler_in_statement_mode_stops_the_start(sample: Database) -> None:
    with pooling(sample.server, "statement") as pooler:
        with pytest.raises(NoTransactionsError):
            await detect_sharing(pooler.url())
        async with Wire(command(pooler.url(sample.name, "reader"))) as wire:
            assert await wire.wait() != 0
    (line,) = wire.stderr.splitlines()
    assert "pool_mode" in line


async def test_watch_triggers_behind_a_pooler_logs_a_warning(
    sample: Database, caplog: pytest.LogCaptureFixture
) -> None:
    with pooling(sample.server, "transaction") as pooler:
        async with inside("--allow-write", "--watch-triggers", pooler.url(sample.name, "owner")):
            pass
    assert "--watch-triggers" in caplog.text
