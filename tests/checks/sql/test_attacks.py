"""Every attack of `attacks.py` on one read-only server process leaves no trace."""

import re
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from tests.checks.sql.attacks import ANSWERED, ATTACKS, FOLDER, Attack
from tests.checks.sql.proof import Proof, make_careless
from tests.pgbouncer import pooling
from tests.postgres_server import PostgresServer
from tests.servers.peers import text_of
from tests.servers.postgres.databases import READER, Database, copy_sample
from tests.servers.postgres.serving import Peer, served

HOSTS_TAKE = 1_000_000
"""Bytes of a result: what Claude Desktop takes."""
SECONDS = 1
ENDLESS = "SELECT count(*) FROM generate_series(1, 1e12)"


@pytest.fixture(scope="module")
def careless(postgres: PostgresServer) -> Database:
    database = copy_sample(postgres, "careless")
    make_careless(database)
    return database


@pytest.fixture(scope="module")
def proof(careless: Database) -> Iterator[Proof]:
    with Proof(careless) as proof:
        yield proof


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(careless: Database) -> AsyncIterator[Peer]:
    async with served("--timeout", str(SECONDS), careless.guarded) as peer:
        yield peer


async def _answer(server: Peer, query: str) -> tuple[str, str]:
    """The code of an answer, and all of its text."""
    answer = await server.request("tools/call", name="read_query", arguments={"query": query})
    if "error" in answer:
        return str(answer["error"]["code"]), answer["error"]["message"]
    text = text_of(answer["result"])
    if not answer["result"].get("isError"):
        return ANSWERED, text
    code = re.match(r"(\w+): ", text)
    return code[1] if code else "", text


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
async def test_an_attack_gets_its_expected_answer_and_changes_nothing(
    attack: Attack, server: Peer, proof: Proof
) -> None:
    before = proof.look()
    folder = str(proof.database.server.folder)

    code, text = await _answer(server, attack.statement.replace(FOLDER, folder))

    assert code in attack.codes, text[:2_000]
    assert len(text) <= HOSTS_TAKE
    assert proof.find_leaks(text) == []
    if code != ANSWERED:  # rows that were not all asked for keep their transaction
        assert proof.wait_for_the_end() == 0
    assert proof.look() == before
    assert (await server.data("read_query", query="SELECT 1"))["rows"] == [[1]]


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("view", ["view_that_lifts_limits", "view_that_becomes_another"])
async def test_settings_of_a_view_do_not_affect_later_queries(view: str, server: Peer, proof: Proof) -> None:
    for _ in range(20):  # whichever connection takes the next query
        await server.call("read_query", query=f"SELECT * FROM {view}")

    code, _ = await _answer(server, ENDLESS)
    settings = await server.data("read_query", query="SELECT current_user, current_setting('transaction_read_only')")

    assert code == "timeout"
    assert settings["rows"] == [["guarded", "on"]]
    assert proof.wait_for_the_end() == 0


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("tool", ["explain_query", "export"])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT pg_advisory_lock(9)",
        'SELECT "pg_terminate_backend"(0)',
        "WITH n AS (DELETE FROM review RETURNING 1) SELECT * FROM n",
        "COPY customer TO STDOUT",
        "SELECT 1; COMMIT; DELETE FROM review",
        "ANALYZE DELETE FROM review",
        "(ANALYZE) DELETE FROM review",
        "ANALYZE SELECT raise_prices()",
    ],
)
async def test_other_tools_with_a_query_refuse_attacks_too(tool: str, query: str, server: Peer, proof: Proof) -> None:
    before = proof.look()

    await server.call(tool, query=query)

    assert proof.look() == before


@pytest.mark.asyncio(loop_scope="module")
async def test_attacks_through_a_pooler_change_and_reveal_nothing(careless: Database, proof: Proof) -> None:
    # Those that end by the time would each take all of it.
    quick = [attack for attack in ATTACKS if "timeout" not in attack.codes]
    before, wrong = proof.look(), []
    with pooling(careless.server, "transaction", size=4) as pooler:
        async with served("--timeout", "60", pooler.url(careless.name, READER)) as peer:
            for attack in quick:
                code, text = await _answer(peer, attack.statement.replace(FOLDER, str(careless.server.folder)))
                if code not in attack.codes or proof.find_leaks(text):
                    wrong.append((attack.name, text[:200]))
    assert wrong == []
    assert proof.look() == before
