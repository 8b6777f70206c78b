"""What principals with less than a server has see of it: through the front door, and nothing of the rest."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from servers.fetch.settings import Narrowing as Hosts
from servers.fetch.settings import Settings as FetchSettings
from servers.filesystem.server import app as filesystem
from servers.filesystem.settings import Narrowing as Directories
from servers.filesystem.settings import Settings as FilesystemSettings
from servers.prompts.server import app as prompts
from servers.prompts.settings import Narrowing as Libraries
from servers.prompts.settings import Settings as PromptsSettings
from servers.sqlite.server import app as sqlite
from servers.sqlite.settings import Narrowing as Databases
from servers.sqlite.settings import Settings as SqliteSettings
from shared.extensions.narrowing import narrowing
from shared.protocol.identity import Principal
from shared.server.server import Server
from tests.shared.server.peer import Peer, talking

SECRET = "nobody else may read this"


@asynccontextmanager
async def ada_and_bob(app: Server[Any], settings: BaseModel, ada: BaseModel) -> AsyncIterator[tuple[Peer, Peer]]:
    """Clients of ada, who has less, and of bob, who has all."""
    async with (
        app.open(settings, extensions=[narrowing({"ada": ada})]) as running,
        talking(running, principal=Principal("key of ada", "ada")) as of_ada,
        talking(running, principal=Principal("key of bob", "bob")) as of_bob,
    ):
        yield of_ada, of_bob


# Directories


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("ada", "ada/private", "bob"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file.txt").write_text("of ada" if name == "ada" else SECRET)
    return tmp_path


def in_ada(settings: FilesystemSettings, folder: Path) -> FilesystemSettings:
    return settings.narrowed(Directories(roots=[folder / "ada"]))


async def test_a_principal_works_in_its_directories_alone(folder: Path) -> None:
    settings = FilesystemSettings(roots=[folder])
    async with ada_and_bob(filesystem, settings, in_ada(settings, folder)) as (ada, bob):
        assert await ada.text("read_text_file", path=str(folder / "ada/file.txt")) == "of ada"
        for path in ("bob/file.txt", "ada/../bob/file.txt", "none", "bob/none"):
            told = await ada.text("read_text_file", path=str(folder / path))
            assert SECRET not in told
            assert "outside" in told
        assert str(folder) + "/ada" in await ada.text("list_allowed_directories")
        assert "bob" not in await ada.text("list_allowed_directories")
        assert await bob.text("read_text_file", path=str(folder / "bob/file.txt")) == SECRET


async def test_what_is_closed_to_all_stays_closed(folder: Path) -> None:
    settings = FilesystemSettings(roots=[folder], deny=["ada/private"])
    async with ada_and_bob(filesystem, settings, in_ada(settings, folder)) as (ada, _):
        assert SECRET not in await ada.text("read_text_file", path=str(folder / "ada/private/file.txt"))


async def test_a_directory_keeps_its_permission(folder: Path) -> None:
    settings = FilesystemSettings(roots=[folder], root=[f"{folder}/ada/private:ro"], allow_write=True)
    async with ada_and_bob(filesystem, settings, in_ada(settings, folder)) as (ada, _):
        await ada.call("write_file", path=str(folder / "ada/new.txt"), content="x")
        await ada.call("write_file", path=str(folder / "ada/private/new.txt"), content="x")
    assert (folder / "ada/new.txt").exists()
    assert not (folder / "ada/private/new.txt").exists()


async def test_a_principal_may_have_no_directory_at_all(folder: Path) -> None:
    settings = FilesystemSettings(roots=[folder])
    async with ada_and_bob(filesystem, settings, settings.narrowed(Directories(roots=[]))) as (ada, _):
        assert "of ada" not in await ada.text("read_text_file", path=str(folder / "ada/file.txt"))


async def test_lists_and_completions_show_its_directories_alone(folder: Path) -> None:
    settings = FilesystemSettings(roots=[folder])
    async with ada_and_bob(filesystem, settings, in_ada(settings, folder)) as (ada, _):
        listed = (await ada.request("resources/list"))["result"]["resources"]
        assert listed
        assert all(one["uri"].startswith(f"file://{folder}/ada") for one in listed)
        templates = (await ada.request("resources/templates/list"))["result"]["resourceTemplates"]
        ref = {"type": "ref/resource", "uri": templates[0]["uriTemplate"]}
        wanted = {"ref": ref, "argument": {"name": "path", "value": f"{folder}/"}}
        completed = (await ada.request("completion/complete", wanted))["result"]["completion"]
        assert not any("bob" in value for value in completed["values"])


@pytest.mark.slow
async def test_changes_elsewhere_are_not_told(folder: Path) -> None:
    settings = FilesystemSettings(roots=[folder], poll=True)
    async with ada_and_bob(filesystem, settings, in_ada(settings, folder)) as (ada, bob):
        for peer in (ada, bob):
            await peer.request("resources/list")
        refused = await ada.request("resources/subscribe", {"uri": f"file://{folder}/bob/file.txt"})
        assert "error" in refused
        (folder / "bob2").mkdir()
        with anyio.fail_after(20):
            await bob.other("notifications/resources/list_changed")
        await ada.text("list_allowed_directories")
        assert ada.others == []


@pytest.mark.parametrize("root", ["..", "missing", "file.txt", "link"])
def test_a_directory_has_to_be_in_those_of_the_server(root: str, folder: Path) -> None:
    (folder / "ada" / "link").symlink_to(folder / "bob")
    settings = FilesystemSettings(roots=[folder / "ada"])
    with pytest.raises(ValueError, match=r"is in none of the directories|is not a directory"):
        settings.narrowed(Directories(roots=[folder / "ada" / root]))


def test_roots_of_clients_and_of_principals_do_not_go_together(folder: Path) -> None:
    with pytest.raises(ValueError, match="client-roots"):
        FilesystemSettings(roots=[folder], client_roots=True).narrowed(Directories(roots=[folder]))


# Databases


@pytest.fixture
def databases(tmp_path: Path) -> SqliteSettings:
    for name in ("shop", "staff"):
        with sqlite3.connect(tmp_path / f"{name}.db") as connection:
            connection.execute(f"CREATE TABLE {name}_table (x)")
            connection.execute(f"INSERT INTO {name}_table VALUES ('{SECRET if name == 'staff' else 'ware'}')")
        connection.close()
    (tmp_path / "files").mkdir()
    paths = [tmp_path / "shop.db", tmp_path / "staff.db"]
    return SqliteSettings(databases=paths, files=tmp_path / "files")


async def test_a_principal_has_its_databases_alone(databases: SqliteSettings) -> None:
    shop = databases.narrowed(Databases(databases=["shop"]))
    async with ada_and_bob(sqlite, databases, shop) as (ada, bob):
        assert "ware" in str(await ada.call("read_query", query="SELECT * FROM shop_table"))
        told = str(await ada.call("read_query", database="staff", query="SELECT * FROM staff_table"))
        assert SECRET not in told
        assert "staff" not in str(await ada.request("resources/list"))
        assert "staff" not in str(await ada.call("describe_database"))
        attached = f"ATTACH '{databases.sources[1].path}' AS other"
        assert "isError" in str(await ada.call("read_query", query=attached))
        assert SECRET in str(await bob.call("read_query", database="staff", query="SELECT * FROM staff_table"))


def test_files_are_there_only_where_they_are_given(databases: SqliteSettings, tmp_path: Path) -> None:
    assert databases.narrowed(Databases(databases=["shop"])).files is None
    given = databases.narrowed(Databases(databases=["shop"], files=tmp_path / "files"))
    assert given.files == tmp_path / "files"
    with pytest.raises(ValueError, match="is in none"):
        databases.narrowed(Databases(databases=["shop"], files=tmp_path))


@pytest.mark.parametrize(("names", "wrong"), [(["nothing"], "there are: shop, staff"), ([], "name at least one")])
def test_a_database_has_to_be_one_of_the_servers(names: list[str], wrong: str, databases: SqliteSettings) -> None:
    with pytest.raises(ValueError, match=wrong):
        databases.narrowed(Databases(databases=names))


def test_less_can_be_narrowed_further(databases: SqliteSettings) -> None:
    shop = databases.narrowed(Databases(databases=["shop"]))
    assert [source.name for source in databases.sources] == ["shop", "staff"]
    with pytest.raises(ValueError, match="no database 'staff'"):
        shop.narrowed(Databases(databases=["staff"]))


# Libraries


@pytest.fixture
def libraries(tmp_path: Path) -> Path:
    for name in ("ada", "bob"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"of_{name}.md").write_text(f"---\ndescription: one of {name}\n---\nSay {name}.\n")
    return tmp_path


async def test_a_principal_has_its_libraries_alone(libraries: Path) -> None:
    settings = PromptsSettings(libraries=[libraries / "ada", libraries / "bob"])
    ada_alone = settings.narrowed(Libraries(libraries=[libraries / "ada"]))
    async with ada_and_bob(prompts, settings, ada_alone) as (ada, bob):
        names = [
            [one["name"] for one in (await peer.request("prompts/list"))["result"]["prompts"]] for peer in (ada, bob)
        ]
        assert names[0] == ["of_ada"]
        assert set(names[1]) == {"of_ada", "of_bob"}
        assert "unknown prompt" in str(await ada.request("prompts/get", {"name": "of_bob"}))
        assert "of_bob" not in str(await ada.request("resources/list"))
        assert "of_bob" not in await ada.text("search_prompts", query="one")


@pytest.mark.parametrize(("given", "writes"), [("ada", True), ("bob", False)])
def test_prompts_are_written_where_they_are_for_all(given: str, *, writes: bool, libraries: Path) -> None:
    settings = PromptsSettings(libraries=[libraries / "ada", libraries / "bob"], allow_write=True)
    assert settings.narrowed(Libraries(libraries=[libraries / given])).allow_write is writes


def test_a_library_has_to_be_one_of_the_servers(libraries: Path) -> None:
    settings = PromptsSettings(libraries=[libraries / "ada"])
    with pytest.raises(ValueError, match="is in none"):
        settings.narrowed(Libraries(libraries=[libraries / "bob"]))
    with pytest.raises(ValueError, match="name at least one"):
        settings.narrowed(Libraries())


# The web


@pytest.mark.parametrize(
    ("allowed", "denied", "given", "wrong"),
    [
        ([], [], ["example.org"], None),
        (["example.org"], [], ["docs.example.org"], None),
        (["example.org"], [], ["org"], "not among the hosts"),
        (["docs.example.org"], [], ["example.org"], "not among the hosts"),
        ([], ["example.org"], ["docs.example.org"], "does not allow"),
        ([], [], [], "name at least one"),
    ],
)
def test_hosts_have_to_be_reachable_for_all(
    allowed: list[str], denied: list[str], given: list[str], wrong: str | None
) -> None:
    settings = FetchSettings(allow_host=allowed, deny_host=denied)
    if wrong is None:
        assert settings.narrowed(Hosts(allow_host=given)).allow_host == given
        return
    with pytest.raises(ValueError, match=wrong):
        settings.narrowed(Hosts(allow_host=given))
