"""The app pages of each server through the protocol: links, contents, and unchanged results for other clients."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from servers.fetch.server import app as fetch
from servers.filesystem.server import app as filesystem
from servers.postgres.server import app as postgres
from servers.prompts.server import app as prompts
from servers.sqlite.server import app as sqlite
from shared import Server
from shared.extensions.apps import MIME_TYPE
from tests.postgres_server import new_database
from tests.servers.hosts import shown, without_marks
from tests.servers.prompts.folders import SIMPLE
from tests.shared.server.peer import ERAS

DATABASES = ("postgres", "sqlite")
LINKED = {
    "fetch": {"fetch": "ui://fetch/page"},
    "filesystem": {
        "directory_tree": "ui://filesystem/files",
        "list_directory_with_sizes": "ui://filesystem/files",
        "edit_file": "ui://filesystem/edit",
    },
    "prompts": {"render_prompt": "ui://prompts/prompt"},
} | {
    name: {"describe_database": f"ui://{name}/schema"}
    | dict.fromkeys(["read_query", "count_numbers"], f"ui://{name}/result")
    for name in DATABASES
}
QUERIES: list[tuple[str, dict[str, Any]]] = [
    ("describe_database", {}),
    ("read_query", {"query": "SELECT 1 AS n"}),
    ("count_numbers", {}),
]
CALLS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "filesystem": [
        ("directory_tree", {"path": "."}),
        ("list_directory_with_sizes", {"path": "."}),
        ("edit_file", {"path": "a.txt", "edits": [{"oldText": "one", "newText": "two"}], "dryRun": True}),
    ],
    "prompts": [("render_prompt", {"name": "greet"})],
} | dict.fromkeys(DATABASES, QUERIES)


class Served(NamedTuple):
    """A server, and the options that it is started with."""

    name: str
    app: Server[Any]
    options: tuple[str | Path, ...]


QUICK = [name for name in LINKED if name != "postgres"]
"""Its pages are those of SQLite, and its server takes a while to start."""


@pytest.fixture(params=[*QUICK, pytest.param("postgres", marks=pytest.mark.slow)])
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Served:
    name: str = request.param
    folder = tmp_path / "served"
    folder.mkdir()
    if name == "filesystem":
        (folder / "a.txt").write_text("one\n")
        return Served(name, filesystem, ("--allow-write", folder))
    if name == "prompts":
        (folder / "greet.md").write_text(SIMPLE)
        return Served(name, prompts, (folder,))
    if name == "fetch":
        return Served(name, fetch, ())
    (folder / "count_numbers.sql").write_text("---\ndescription: d\n---\nSELECT count(*) AS n FROM numbers")
    table = "CREATE TABLE numbers (n integer PRIMARY KEY)"
    if name == "postgres":
        return Served(name, postgres, ("--queries", folder, new_database(table)))
    with closing(sqlite3.connect(tmp_path / "data.db")) as connection, connection:
        connection.execute(table)
    return Served(name, sqlite, ("--queries", folder, tmp_path / "data.db"))


@pytest.mark.parametrize("era", [ERAS[0], pytest.param(ERAS[1], marks=pytest.mark.slow)])
async def test_only_hosts_of_apps_get_links_to_self_contained_pages(served: Served, era: str) -> None:
    async with shown(served.app, *served.options, era=era) as (host, other):
        with_links, tools = [(await peer.request("tools/list"))["result"]["tools"] for peer in (host, other)]
        links = {tool["name"]: tool["_meta"] for tool in with_links if "ui" in tool.get("_meta", {})}
        assert links == {
            name: {"ui": {"resourceUri": uri}, "ui/resourceUri": uri} for name, uri in LINKED[served.name].items()
        }
        assert "ui://" not in str(tools)
        assert [{name: value for name, value in tool.items() if name != "_meta"} for tool in with_links] == tools
        assert "ui://" not in str((await other.request("resources/list"))["result"])
        for uri in sorted(set(LINKED[served.name].values())):
            (content,) = (await host.request("resources/read", {"uri": uri}))["result"]["contents"]
            ui = {"csp": {}, "prefersBorder": served.name != "fetch"}
            if not uri.endswith(("/edit", "/schema")):
                ui["permissions"] = {"clipboardWrite": {}}
            assert (content["uri"], content["mimeType"], content["_meta"]["ui"]) == (uri, MIME_TYPE, ui)
            assert content["text"].startswith("<!doctype html>")
            assert not re.search(r"<(link|script|img)[^>]+(src|href)=", content["text"])
        for tool, arguments in CALLS.get(served.name, []):
            with_view, without = [(await peer.call(tool, **arguments))["result"] for peer in (host, other)]
            assert without_marks(with_view) == without_marks(without)
            assert "view" not in without.get("_meta", {})
