"""Tries every attack of the list on our PostgreSQL server, on dbhub and on Toolbox, and prints what came of it.

python -m tests.checks.comparison.postgres_attacks [--server NAME ...] [--attack PART]

Each is told to allow reading alone and a second for each statement, in the way that it has for that. `refuses` is an
error, in whatever words; `answers` are rows that do no harm; `runs it` is what should not be run, though nothing that
is looked at has changed. What is in capitals is harm. Exit code: 1 where ours did any, else 0.
"""

import argparse
import re
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from itertools import count
from pathlib import Path

import anyio

from tests.checks.benchmarks import postgres_peers
from tests.checks.sql.attacks import ANSWERED, ATTACKS, FOLDER, Attack
from tests.checks.sql.proof import Proof, make_careless
from tests.npm import Unavailable
from tests.ports import free_port
from tests.postgres_server import PostgresServer, short_folder
from tests.servers.peers import text_of
from tests.servers.postgres.databases import GUARDED, PASSWORD, Database, copy_sample, make_sample
from tests.wire import Wire

PATIENCE = 5.0
"""Seconds in which every call has to be answered; each server stops a statement after one."""
HOSTS_TAKE = 1_000_000
"""Bytes of a result: what Claude Desktop takes."""
SERVERS = ("ours", "dbhub", "toolbox")
SESSION = """
SELECT 'session[' || current_user || ' ' || current_setting('default_transaction_read_only') || ' '
  || current_setting('statement_timeout') || ' ' || current_setting('search_path') || ']' AS session
"""
_NUMBERS = count(1)


class Harm(Exception):
    """What an attack came to, in capital letters."""


class Target:
    """One server with a database of its own; `alive` until it has to be started anew."""

    def __init__(self, name: str, wire: Wire, proof: Proof) -> None:
        self.name = name
        self.wire = wire
        self.proof = proof
        self.alive = True

    async def call(self, sql: str) -> tuple[bool, str]:
        """Whether a statement was run, and the text of the answer. Raises Harm."""
        tool, argument = ("read_query", "query") if self.name == "ours" else ("execute_sql", "sql")
        params = {"name": tool, "arguments": {argument: sql}}
        try:
            answer = await self.wire.request("tools/call", params, timeout=PATIENCE)
        except TimeoutError:
            raise Harm("HANGS") from None
        except (EOFError, anyio.BrokenResourceError):
            raise Harm("ENDS") from None
        if "error" in answer:
            return False, answer["error"]["message"]
        return not answer["result"].get("isError"), text_of(answer["result"])

    async def session(self) -> str:
        """What holds for the session of the next statement. Raises Harm."""
        done, text = await self.call(SESSION)
        found = re.search(r"session\[.*?\]", text)
        if not done or found is None:
            raise Harm("BREAKS")
        return found[0]

    async def attack(self, attack: Attack) -> str:
        """What came of it."""
        try:
            return await self._attack(attack)
        except Harm as harm:
            self.alive = False
            return str(harm)

    async def _attack(self, attack: Attack) -> str:
        before, session = self.proof.look(), await self.session()
        done, text = await self.call(attack.statement.replace(FOLDER, str(self.proof.database.server.folder)))
        if self.proof.find_leaks(text):
            raise Harm("TELLS")
        if len(text) > HOSTS_TAKE:
            raise Harm("TOO LONG")
        if await self.session() != session:
            raise Harm("STAYS SET")
        after = self.proof.look()
        if changed := [name for name in before if before[name] != after.get(name)]:
            raise Harm(f"CHANGES {changed[0]}")
        if done and ANSWERED not in attack.codes:
            return "runs it"
        return "answers" if done else "refuses"


def _command(name: str, folder: Path, database: Database) -> list[str]:
    if name == "ours":
        return postgres_peers.ours_command(database.guarded)
    if name == "dbhub":
        return postgres_peers.dbhub_command(folder, database.guarded)
    return postgres_peers.toolbox_command(folder, database.server.port, database.name, GUARDED, PASSWORD)


@asynccontextmanager
async def _started(name: str, server: PostgresServer) -> AsyncIterator[Target]:
    """One that hangs is killed at the end."""
    database = copy_sample(server, f"{name}_{next(_NUMBERS)}")
    make_careless(database)
    with tempfile.TemporaryDirectory() as folder, Proof(database) as proof:
        async with Wire(_command(name, Path(folder), database), check=False) as wire:
            await wire.initialize()
            target = Target(name, wire, proof)
            yield target
            if not target.alive:
                wire.kill()


async def try_all(name: str, server: PostgresServer, attacks: list[Attack]) -> dict[str, str]:
    """What came of each on one server, by name. Raises Unavailable, or EOFError where the server does not start."""
    found: dict[str, str] = {}
    left = iter(attacks)
    attack = next(left, None)
    while attack is not None:
        async with _started(name, server) as target:
            while attack is not None and target.alive:
                found[attack.name] = await target.attack(attack)
                attack = next(left, None)
    return found


@contextmanager
def _cluster() -> Iterator[PostgresServer]:
    with short_folder() as folder:
        server = PostgresServer(folder, port=free_port())
        server.start()
        make_sample(server)
        try:
            yield server
        finally:
            server.stop()


def _try_server(name: str, attacks: list[Attack]) -> dict[str, str]:
    try:
        with _cluster() as server:
            return anyio.run(partial(try_all, name, server, attacks))
    except (Unavailable, EOFError) as reason:
        print(f"{name} could not be started: {str(reason)[-300:]}", file=sys.stderr)
        return {}


def _cells(found: dict[str, dict[str, str]], attack: Attack) -> list[str]:
    return [outcomes.get(attack.name, "-") for outcomes in found.values()]


def _sum(outcomes: dict[str, str]) -> str:
    kinds = Counter("harm" if outcome[0].isupper() else outcome for outcome in outcomes.values())
    return ", ".join(f"{number} {kind}" for kind, number in kinds.most_common())


def main() -> int:
    """Tries what was asked for, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--server", action="append", choices=SERVERS, help="this one alone; may be given several times"
    )
    parser.add_argument("--attack", default="", metavar="PART", help="those with this in their name")
    given = parser.parse_args()
    attacks = [attack for attack in ATTACKS if given.attack in attack.name]
    found = {name: _try_server(name, attacks) for name in given.server or SERVERS}
    for words in (["attack", *found], *([one.name, *_cells(found, one)] for one in attacks)):
        print("".join(f"{word:42}" for word in words).rstrip())
    for name, outcomes in found.items():
        print(f"{name}: {_sum(outcomes) or 'not there'}")
    print(", ".join(f"{package} {version}" for package, version in postgres_peers.versions().items()))
    return int(any(outcome[0].isupper() for outcome in found.get("ours", {}).values()))


if __name__ == "__main__":
    sys.exit(main())
