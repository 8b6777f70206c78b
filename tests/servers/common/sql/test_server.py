"""A server of a made-up engine, with the tools and resources of every engine."""

from typing import Any

import pytest

from servers.common.sql.jobs import Job
from servers.common.sql.query.pages import AnswerLimits
from servers.common.sql.write.results import ResponseLimits
from servers.sqlite.server import app as sqlite
from shared.contracts import TaskLimits
from tests.servers import peers
from tests.servers.common.sql.made_up import Database, app

READ = {"query": "SELECT * FROM pets"}
INSERT = {"query": "INSERT INTO pets VALUES (?, ?)", "parameters": ["3", "Ada"]}


async def test_a_made_up_engine_has_all_common_tools() -> None:
    ours, theirs = ([tool.name for tool in one.tools.all()] for one in (app, sqlite))
    assert ours == [name for name in theirs if name != "backup"]
    described = {tool.name: tool.entry["description"] for tool in app.tools.all()}
    assert described["read_query"].startswith("Run a statement that reads: SELECT. It can't")
    assert "{" not in "".join(described.values())


async def test_a_made_up_engine_reads_and_writes_rows() -> None:
    async with peers.inside(app, "zoo") as peer:
        assert "3 rows" not in await peer.text("read_query", query="SELECT * FROM pets")
        await peer.text("write_query", query="INSERT INTO pets VALUES (?, ?)", parameters=["3", "Ada"])
        found = await peer.data("read_query", query="SELECT * FROM pets WHERE id = ?", parameters=["3"])
        assert found["rows"] == [["3", "Ada"]]
        truncated = await peer.data("read_query", query="SELECT * FROM pets", max_rows=2)
        rest = await peer.data("read_query", query="SELECT * FROM pets", cursor=truncated["next_cursor"])
        assert (len(truncated["rows"]), rest["rows"], rest["truncated"]) == (2, [["3", "Ada"]], False)
        await peer.text("create_table", query="CREATE TABLE owners (id, name)")
        assert "owners" in await peer.text("list_tables")
        assert (await peer.error("read_query", query="DROP TABLE pets")).startswith("refused: ")


async def test_a_made_up_engine_describes_and_exports_tables() -> None:
    async with peers.inside(app, "zoo") as peer:
        assert "pets" in await peer.text("describe_database")
        assert "name" in await peer.text("describe_table", table_name="pets")
        assert "scanned in full: pets" in await peer.text("explain_query", query="SELECT * FROM pets")
        (link, _) = (await peer.call("export", query="SELECT * FROM pets"))["content"]
        read = await peer.request("resources/read", uri=link["uri"])
        assert read["result"]["contents"][0]["text"] == "id,name\r\n1,Rex\r\n2,Tom\r\n"
        schema = await peer.request("resources/read", uri="madeup:///zoo/schema")
        assert schema["result"]["contents"][0]["text"] == "CREATE TABLE pets (id, name);"


@pytest.mark.parametrize(
    ("method", "tool", "arguments"),
    [
        ("read", "read_query", {**READ, "max_rows": 1}),
        ("export", "export", READ),
        ("execute", "write_query", {**INSERT, "max_rows": 1}),
        ("dry_run", "write_query", {**INSERT, "max_rows": 1, "dry_run": True}),
        ("import_csv", "import_csv", {"table_name": "pets", "csv": "id,name"}),
    ],
)
async def test_an_engine_receives_the_time_limit_and_the_requested_rows(
    monkeypatch: pytest.MonkeyPatch, method: str, tool: str, arguments: dict[str, Any]
) -> None:
    given: list[Any] = []
    do = getattr(Database, method)

    def record(database: Database, *all_of_it: Any, **more: Any) -> Any:
        given.extend(all_of_it)
        return do(database, *all_of_it, **more)

    monkeypatch.setattr(Database, method, record)
    async with peers.inside(app, "zoo") as peer:
        created = await peer.request("tools/call", name=tool, arguments=arguments, task={})
        await peer.request("tasks/result", taskId=created["result"]["task"]["taskId"])
    assert [one.timeout for one in given if isinstance(one, Job)] == [TaskLimits().seconds]
    limits = [one.rows if isinstance(one, ResponseLimits) else one for one in given]
    rows = [one.rows for one in limits if isinstance(one, AnswerLimits)]
    assert rows == [1] * ("max_rows" in arguments)
