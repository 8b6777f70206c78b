"""Our clients and others on four connections of a pooler: no client sees the settings of another."""

from tests.checks.sql.poolers import mix
from tests.pgbouncer import pooling
from tests.servers.postgres.databases import Database


async def test_our_settings_are_neither_lost_nor_visible_to_others(database: Database) -> None:
    with pooling(database.server, "transaction", size=4) as pooler:
        seen = await mix(pooler, database, 400)
    assert (seen.lost, seen.leaked) == (0, 0)
    assert min(seen.ours, seen.others) > 50
