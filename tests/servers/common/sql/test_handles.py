"""Replicas with one session: cursors continue on each; exports and memos belong to one."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from servers.common.sql.errors import SqlError
from servers.common.sql.handles import ProcessNames
from servers.sqlite.server import app
from shared.program.settings.option_parser import OptionParser
from shared.program.settings.options import Group, read_options
from shared.stores import memory
from tests.shared.transports.http.http_wire import Json, Site, listening

ALL = "SELECT n FROM numbers ORDER BY n"


async def call_tool(site: Site, session: Json, tool: str, **arguments: Any) -> Any:
    answer = await site.post(site.message("tools/call", {"name": tool, "arguments": arguments}), session)
    return answer.json()["result"]


@asynccontextmanager
async def replicas(file: Path, count: int) -> AsyncIterator[list[Site]]:
    """Replicas over one database."""
    stores, parser = memory.Stores(), OptionParser("test", [Group(app.settings_model.model_fields)])
    settings = read_options(app.settings_model, parser.read([str(file)]))
    async with AsyncExitStack() as stack:
        runs = [await stack.enter_async_context(app.open(settings, stores=stores)) for _ in range(count)]
        yield [await stack.enter_async_context(listening(run)) for run in runs]


async def test_a_cursor_continues_on_three_replicas(file: Path) -> None:
    rows: list[int] = []
    async with replicas(file, 3) as sites:
        session, more, changed = await sites[0].initialize(), {}, []
        for site in sites:
            answer = (await call_tool(site, session, "read_query", query=ALL, max_rows=10, **more))[
                "structuredContent"
            ]
            rows += [row[0] for row in answer["rows"]]
            more, changed = {"cursor": answer["next_cursor"]}, [*changed, answer["changed"]]
    assert rows == [*range(30)]
    # Only the connection that gave the rows before knows that nobody has changed the database.
    assert changed == [False, True, True]


async def test_an_export_of_another_replica_is_an_elsewhere_error(file: Path) -> None:
    async with replicas(file, 2) as (here, there):
        session = await here.initialize()
        exported = (await call_tool(here, session, "export", query=ALL))["content"][0]["uri"]
        missing = await there.post(there.message("resources/read", {"uri": exported}), session)
        contents = await here.post(here.message("resources/read", {"uri": exported}), session)
    error = missing.json()["error"]
    assert (error["code"], error["message"].partition(":")[0]) == (-32002, "elsewhere")
    assert error["message"].endswith("Export it again.")
    assert "result" in contents.json()


async def test_a_memo_belongs_to_one_replica(file: Path) -> None:
    async with replicas(file, 2) as (here, there):
        session = await here.initialize()
        await call_tool(here, session, "append_insight", insight="prices rise")
        answers = [
            await site.post(site.message("resources/read", {"uri": "memo://insights"}), session)
            for site in (here, there)
        ]
    memos = [answer.json()["result"]["contents"][0]["text"] for answer in answers]
    assert ["prices rise" in memo for memo in memos] == [True, False]
    assert all("of one replica" in memo for memo in memos)


def test_names_of_no_process_are_not_elsewhere() -> None:
    names = ProcessNames()
    for name in (names.new(), "", "made up", "0123456789abcde", f"{ProcessNames().new()}x", "ä" * 16):
        names.require_local(name, "it", "")
    with pytest.raises(SqlError, match="a different one"):
        names.require_local(ProcessNames().new(), "it", "Ask again.")
