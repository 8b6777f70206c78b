"""`--confirm` and `--confirm-rows`: the user is asked before anything, or much, changes, and agrees to just that."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from tests.servers.peers import FORMS, AskedPeer
from tests.servers.postgres.databases import Database
from tests.servers.postgres.serving import command
from tests.wire import STATELESS, Wire

pytestmark = pytest.mark.slow
every_era = pytest.mark.parametrize(
    "era", [pytest.param("2025-06-18", marks=pytest.mark.slow), "2025-11-25", STATELESS]
)


@asynccontextmanager
async def served(
    database: Database, era: str, actions: str, *options: str, meanwhile: Callable[[], None] = lambda: None
) -> AsyncIterator[AskedPeer]:
    async with Wire(command("--allow-write", *(options or ["--confirm"]), database.owner)) as wire:
        peer = AskedPeer(wire, era, actions, meanwhile)
        wire.answers["elicitation/create"] = peer.answer
        if era != STATELESS:
            await wire.initialize(era, FORMS)
        yield peer


@every_era
async def test_the_user_is_asked_before_anything_changes(database: Database, era: str) -> None:
    async with served(database, era, "accept decline accept accept") as peer:
        query = {"query": "DELETE FROM refund WHERE id = $1", "parameters": [1]}
        assert (await peer.text("write_query", **query)).startswith("committed; ")
        assert (await peer.text("write_query", query="DROP TABLE refund")).startswith("declined: ")
        assert (await peer.text("create_table", query="CREATE TABLE new (a int)")).startswith("committed; ")
        assert (await peer.text("import_csv", table="new", csv="a\n1\n2\n")).startswith("2 rows imported")
    assert peer.questions[:3] == [
        f"Change {database.name}? 1 row changes (refund):\nDELETE FROM refund WHERE id = $1 -- [1]",
        f"Change {database.name}? the schema changes:\nDROP TABLE refund",
        f"Change {database.name}? the schema changes:\nCREATE TABLE new (a int)",
    ]
    assert "2 rows change (new)" in peer.questions[3]
    assert database.run("SELECT (SELECT count(*) FROM refund), (SELECT count(*) FROM new)") == [(1, 2)]


@every_era
async def test_few_rows_change_unasked(database: Database, era: str) -> None:
    async with served(database, era, "decline", "--confirm-rows", "2") as peer:
        assert (await peer.text("write_query", query="DELETE FROM refund")).startswith("committed; ")
        assert (await peer.text("write_query", query="DELETE FROM payment")).startswith("declined: ")
    assert peer.questions == [f"Change {database.name}? 50 rows change (payment):\nDELETE FROM payment"]
    assert database.run("SELECT (SELECT count(*) FROM refund), (SELECT count(*) FROM payment)") == [(0, 50)]


@every_era
async def test_no_lock_is_held_while_the_user_thinks_and_consent_is_to_what_was_asked(
    database: Database, era: str
) -> None:
    def write() -> None:
        database.run("SET lock_timeout = '10s'; INSERT INTO refund VALUES (3, 3, 1, 1) ON CONFLICT DO NOTHING")

    async with served(database, era, "accept decline", meanwhile=write) as peer:
        text = await peer.text("write_query", query="DELETE FROM refund")
    assert peer.questions[0] == f"Change {database.name}? 2 rows change (refund):\nDELETE FROM refund"
    assert text.startswith("declined: " if era == STATELESS else "changed: ")
    assert database.run("SELECT count(*) FROM refund") == [(3,)]
