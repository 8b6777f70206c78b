"""`--confirm`: the user is asked before anything changes, and agrees to just that. What all engines have in common is
with `servers.common.sql.features.writing`; here it is how PostgreSQL counts, and that it holds no lock meanwhile."""

import pytest

from servers.postgres.server import app
from tests.servers.peers import AskedPeer, wired_inside
from tests.servers.postgres.databases import Database
from tests.wire import STATELESS


@pytest.mark.parametrize("era", [pytest.param("2025-11-25", marks=pytest.mark.slow), STATELESS])
async def test_the_user_is_asked_with_what_changes_and_no_lock_is_held_meanwhile(
    database: Database, era: str
) -> None:
    def write() -> None:
        database.run("SET lock_timeout = '10s'; INSERT INTO refund VALUES (3, 3, 1, 1) ON CONFLICT DO NOTHING")

    async with wired_inside(app, "--allow-write", "--confirm", database.owner, era=era) as wire:
        peer = AskedPeer(wire, era, "accept decline accept accept decline")  # type: ignore[arg-type]
        wire.answers["elicitation/create"] = peer.answer
        query = {"query": "DELETE FROM refund WHERE id = $1", "parameters": [1]}
        assert (await peer.text("write_query", **query)).startswith("committed; ")
        assert (await peer.text("write_query", query="DROP TABLE refund")).startswith("declined: ")
        assert (await peer.text("import_csv", table="new", csv="a\n1\n2\n")).startswith("2 rows imported")
        peer.meanwhile = write
        text = await peer.text("write_query", query="DELETE FROM refund")
    assert text.startswith("declined: " if era == STATELESS else "changed: ")
    assert peer.questions[:4] == [
        f"Change {database.name}? 1 row changes (refund):\nDELETE FROM refund WHERE id = $1 -- [1]",
        f"Change {database.name}? the schema changes:\nDROP TABLE refund",
        f"Change {database.name}? the schema changes and 2 rows change (new):\nimport a CSV into new",
        f"Change {database.name}? 1 row changes (refund):\nDELETE FROM refund",
    ]
    assert database.run("SELECT (SELECT count(*) FROM refund), (SELECT count(*) FROM new)") == [(2, 2)]
