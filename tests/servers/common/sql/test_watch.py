"""Updates about changes that another replica makes."""

import sqlite3
from contextlib import closing
from pathlib import Path

from servers.sqlite.server import app as sqlite
from shared.contracts import Stores
from tests.quiet import quiet
from tests.servers.replicas import LISTED, expect_updates, subscribe_to, two


async def test_writes_of_another_replica_send_updates(stores: Stores, tmp_path: Path) -> None:
    file = tmp_path / "shop.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE one (a)")
        connection.execute("CREATE VIEW seen AS SELECT a FROM one")
    async with two(sqlite, stores, "--allow-write", file) as (here, there):
        await subscribe_to(here, "sqlite:///shop/one", "sqlite:///shop/seen", "sqlite:///shop/schema")
        await here.request("resources/list")
        await quiet()
        await there.text("write_query", query="INSERT INTO one VALUES (1)")
        await expect_updates(here, "sqlite:///shop/one", "sqlite:///shop/seen")
        await there.text("write_query", query="CREATE TABLE two (b)")
        await here.other(LISTED)


async def test_an_insight_of_another_replica_sends_an_update(stores: Stores, tmp_path: Path) -> None:
    async with two(sqlite, stores, "--demo") as (here, there):
        await subscribe_to(here, "memo://insights")
        await there.text("append_insight", insight="It sells.")
        await expect_updates(here, "memo://insights")
