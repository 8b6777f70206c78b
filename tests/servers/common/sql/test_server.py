"""A server of any engine: one that is made up has all tools and resources as soon as it has what an engine gives."""

from servers.sqlite.server import app as sqlite
from tests.servers import peers
from tests.servers.common.sql.made_up import app


async def test_an_engine_of_its_own_has_all_tools_that_all_have() -> None:
    ours, theirs = ([tool.name for tool in one.tools.all()] for one in (app, sqlite))
    assert ours == [name for name in theirs if name != "backup"]
    described = {tool.name: tool.listed["description"] for tool in app.tools.all()}
    assert described["read_query"].startswith("Run a statement that reads: SELECT. It can't")
    assert "{" not in "".join(described.values())


async def test_it_reads_and_changes() -> None:
    async with peers.inside(app, "zoo") as peer:
        assert "3 rows" not in await peer.text("read_query", query="SELECT * FROM pets")
        await peer.text("write_query", query="INSERT INTO pets VALUES (?, ?)", parameters=["3", "Ada"])
        found = await peer.data("read_query", query="SELECT * FROM pets WHERE id = ?", parameters=["3"])
        assert found["rows"] == [["3", "Ada"]]
        cut = await peer.data("read_query", query="SELECT * FROM pets", max_rows=2)
        rest = await peer.data("read_query", query="SELECT * FROM pets", cursor=cut["next_cursor"])
        assert (len(cut["rows"]), rest["rows"], rest["truncated"]) == (2, [["3", "Ada"]], False)
        await peer.text("create_table", query="CREATE TABLE owners (id, name)")
        assert "owners" in await peer.text("list_tables")
        assert (await peer.error("read_query", query="DROP TABLE pets")).startswith("refused: ")


async def test_it_describes_and_exports() -> None:
    async with peers.inside(app, "zoo") as peer:
        assert "pets" in await peer.text("describe_database")
        assert "name" in await peer.text("describe_table", table_name="pets")
        assert "scanned in full: pets" in await peer.text("explain_query", query="SELECT * FROM pets")
        (link, _) = (await peer.call("export", query="SELECT * FROM pets"))["content"]
        read = await peer.request("resources/read", uri=link["uri"])
        assert read["result"]["contents"][0]["text"] == "id,name\r\n1,Rex\r\n2,Tom\r\n"
        schema = await peer.request("resources/read", uri="madeup:///zoo/schema")
        assert schema["result"]["contents"][0]["text"] == "CREATE TABLE pets (id, name);"
