"""Two replicas with one session: what only one of them can hold, the other says is elsewhere."""

from pathlib import Path
from typing import Any

import pytest

from servers.common.sql.errors import SqlError
from servers.common.sql.handles import HeldNames
from servers.sqlite.server import app
from shared.program.settings.option_parser import OptionParser
from shared.program.settings.options import Group, read_options
from shared.stores import memory
from tests.shared.transports.http.http_wire import Json, Site, listening

ALL = "SELECT n FROM numbers ORDER BY n"


async def called(site: Site, session: Json, tool: str, **arguments: Any) -> Any:
    answer = await site.post(site.message("tools/call", {"name": tool, "arguments": arguments}), session)
    return answer.json()["result"]


async def test_a_cursor_and_an_export_say_that_they_are_of_another_replica(file: Path) -> None:
    stores, parser = memory.Stores(), OptionParser("test", [Group(app.settings_model.model_fields)])
    settings = read_options(app.settings_model, parser.read([str(file)]))
    async with (
        app.open(settings, stores=stores) as one,
        app.open(settings, stores=stores) as other,
        listening(one) as here,
        listening(other) as there,
    ):
        session = await here.initialize()
        first = await called(here, session, "read_query", query=ALL, max_rows=10)
        rest = {"query": ALL, "max_rows": 10, "cursor": first["structuredContent"]["next_cursor"]}
        refused = await called(there, session, "read_query", **rest)
        again = await called(here, session, "read_query", **rest)
        exported = (await called(here, session, "export", query=ALL))["content"][0]["uri"]
        missing = await there.post(there.message("resources/read", {"uri": exported}), session)
        found = await here.post(here.message("resources/read", {"uri": exported}), session)
    text = refused["content"][0]["text"]
    assert (refused["isError"], text.partition(":")[0]) == (True, "elsewhere")
    assert text.endswith("Run the query again without a cursor.")
    assert again["structuredContent"]["rows"][0] == [10]
    error = missing.json()["error"]
    assert (error["code"], error["message"].partition(":")[0]) == (-32002, "elsewhere")
    assert error["message"].endswith("Export it again.")
    assert "result" in found.json()


def test_what_nobody_has_named_is_not_elsewhere() -> None:
    names = HeldNames()
    for name in (names.new(), "", "made up", "0123456789abcde", f"{HeldNames().new()}x", "ä" * 16):
        names.check_here(name, "it", "")
    with pytest.raises(SqlError, match="another one"):
        names.check_here(HeldNames().new(), "it", "Ask again.")
