"""Errors at the start: passwords stay hidden, and privileged roles are refused."""

import json
from contextlib import suppress

import anyio
import pytest

from servers.postgres import server
from servers.postgres.engine.deadline import Limits
from servers.postgres.write.allowed import AllowedDdl
from tests.postgres_server import PostgresServer
from tests.servers.peers import record
from tests.servers.postgres.serving import command, inside
from tests.wire import Wire

SECRET = "hunter-2"
WRONG = {
    "wrong password": "postgresql://guarded:hunter-2@/sample?host=FOLDER",
    "no such role": "postgresql://nobody:hunter-2@/nonesuch?host=FOLDER",
    "no such folder": "postgresql://guarded:hunter-2@/sample?host=FOLDER/nonesuch",
    "no such host": "postgresql://guarded:hunter-2@nonesuch.invalid/sample",
    "no port": "postgresql://guarded:hunter-2@127.0.0.1:port/sample",
    "a percent sign": "postgresql://guarded:hunter-2%@127.0.0.1/sample",
    "no end of an address": "postgresql://guarded:hunter-2@[::1/sample",
    "an unknown option": "postgresql://guarded@127.0.0.1/sample?passwort=hunter-2",
    "an option given as words": "host=127.0.0.1 user=guarded password='hunter-2",
}


@pytest.mark.slow
@pytest.mark.parametrize("url", WRONG.values(), ids=WRONG)
async def test_errors_about_a_url_do_not_show_its_password(postgres: PostgresServer, url: str) -> None:
    words = command(url.replace("FOLDER", str(postgres.folder)))
    answers = []
    async with Wire(words) as wire:
        with suppress(EOFError, anyio.BrokenResourceError):  # the server may end
            await wire.initialize()
            answers.append(await wire.request("tools/call", {"name": "list_tables", "arguments": {}}))

    assert SECRET not in wire.stderr
    assert "Traceback" not in wire.stderr
    assert SECRET not in json.dumps(answers)
    assert str(postgres.folder) not in json.dumps(answers)


async def test_an_unreachable_database_at_the_start_is_one_line_in_the_log() -> None:
    async with Wire(command("postgresql://reader@/sample?host=/nowhere")) as wire:
        assert await wire.wait() != 0
    (line,) = wire.stderr.splitlines()
    assert "/nowhere" in line


@pytest.mark.slow
async def test_a_privileged_role_is_refused_without_allow_privileged(postgres: PostgresServer) -> None:
    postgres.run("CREATE ROLE files; GRANT pg_read_server_files TO files; CREATE ROLE climber LOGIN NOINHERIT")
    postgres.run("GRANT files TO climber")
    for user, word in (("postgres", "--allow-privileged"), ("climber", "pg_read_server_files")):
        async with Wire(command(postgres.url("sample", user))) as wire:
            assert await wire.wait() != 0
        assert word in wire.stderr
    async with Wire(command("--allow-privileged", postgres.url("sample"))) as wire:
        await wire.initialize()


async def test_every_option_reaches_its_part(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = record(monkeypatch, server, "open_databases")
    options = """a=host=/nowhere:ro b=host=/nowhere --allow-write --timeout 1 --busy-timeout 2 --max-value 3000
    --readers 4 --allow-privileged --allow-ddl grants --allow-ddl extension=e --hide t --hide t.c"""
    with pytest.raises(ValueError, match="/nowhere"):
        async with inside(*options.split()):
            pass
    targets, *given = opened["open_databases"]
    assert [(target.name, target.writable) for target in targets] == [("a", False), ("b", True)]
    allowed = AllowedDdl(grants=True, extensions=frozenset("e"))
    assert given == [Limits(1, 2, 3_000), 4, allowed, True, ["t", "t.c"]]
