"""Finding the server and the password as libpq does."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from servers.postgres.database import PostgresDatabase
from servers.postgres.engine.connecting import OpeningError
from servers.postgres.engine.link import Link, open_link
from servers.postgres.engine.target import parse_target
from tests.postgres_server import PostgresServer
from tests.servers.postgres.databases import PASSWORD, Database
from tests.servers.postgres.engines import LIMITS, soon


@asynccontextmanager
async def opened(given: str) -> AsyncIterator[Link]:
    link = await open_link(parse_target(given, False), LIMITS)
    yield link
    link.close()


async def find_user(given: str) -> str:
    async with opened(given) as link:
        ((user,),) = await link.ask("SELECT session_user::text", deadline=soon())
    return str(user)


async def test_the_url_may_contain_the_password(sample: Database) -> None:
    assert await find_user(sample.guarded) == "guarded"


async def test_a_passfile_may_contain_the_password(sample: Database, tmp_path: Path) -> None:
    escaped = PASSWORD.replace(":", "\\:")
    path = tmp_path / "passwords"
    path.write_text(f"*:*:*:guarded:{escaped}\n")
    path.chmod(0o600)
    assert await find_user(f"{sample.server.url(sample.name, 'guarded')}&passfile={path}") == "guarded"


async def test_the_environment_may_contain_the_password(sample: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    assert await find_user(sample.server.url(sample.name, "guarded")) == "guarded"


async def test_a_service_is_read_from_the_service_file(
    sample: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "services"
    path.write_text(f"[work]\nhost={sample.server.folder}\ndbname={sample.name}\nuser=reader\n")
    monkeypatch.setenv("PGSERVICEFILE", str(path))
    assert await find_user("mine=service=work") == "reader"


async def test_the_first_host_that_accepts_is_used(postgres: PostgresServer) -> None:
    assert await find_user(f"postgresql://reader@/sample?host=/nowhere,{postgres.folder}") == "reader"


async def test_a_host_without_an_address_is_named_in_the_log_only(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(OpeningError) as caught:
        await PostgresDatabase(parse_target("mine=postgresql://u:secret@nowhere.invalid/x", False), LIMITS, 1).check()
    assert "nowhere" not in str(caught.value)
    assert "mine: no host has an address" in caplog.text
    assert "secret" not in caplog.text


async def test_options_in_the_url_do_not_override_the_safe_settings(sample: Database) -> None:
    options = "-c%20default_transaction_read_only%3Doff%20-c%20statement_timeout%3D0"
    async with opened(f"{sample.reader}&options={options}") as link, link.transaction(soon()):
        shown = await link.ask(
            "SELECT current_setting('transaction_read_only'), current_setting('statement_timeout')", deadline=soon()
        )
    assert shown == [("on", "25s")]
