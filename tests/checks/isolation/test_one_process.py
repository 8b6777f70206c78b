"""Two servers of one kind in one process share no settings."""

from contextlib import AsyncExitStack

import pytest

from servers.filesystem.server import app as filesystem
from servers.filesystem.settings import Settings as Roots
from servers.sqlite.server import app as sqlite
from servers.sqlite.settings import Settings as Databases
from tests.shared.server.peer import ERAS, talking


async def tools(peer):
    return [tool["name"] for tool in (await peer.request("tools/list"))["result"]["tools"]]


@pytest.mark.parametrize("era", ERAS)
async def test_two_filesystem_servers_in_one_process_keep_to_their_roots(tmp_path, era):
    async with AsyncExitStack() as stack:
        peers = []
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "a.txt").write_text(name)
            disabled = ["list_directory"] if name == "two" else []
            settings = Roots(roots=[tmp_path / name], disable_tool=disabled)
            peers.append(await stack.enter_async_context(talking(filesystem, era, settings=settings)))
        one, two = peers
        assert (await one.text("read_text_file", path="a.txt"), await two.text("read_text_file", path="a.txt")) == (
            "one",
            "two",
        )
        assert "outside_roots" in await one.text("read_text_file", path=str(tmp_path / "two" / "a.txt"))
        assert ("list_directory" in await tools(one), "list_directory" in await tools(two)) == (True, False)


async def test_two_sqlite_servers_in_one_process_have_their_own_queries(tmp_path):
    (tmp_path / "customers.sql").write_text("---\ndescription: All customers.\n---\nSELECT name FROM customers")
    async with (
        talking(sqlite, settings=Databases(demo=True, queries=tmp_path)) as one,
        talking(sqlite, settings=Databases(demo=True)) as two,
    ):
        assert ("customers" in await tools(one), "customers" in await tools(two)) == (True, False)
