"""Settings of the operator, and roots of clients and principals that narrow them."""

import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from pydantic import ValidationError

from servers.common.files.denylist import Denylist
from servers.common.files.roots import Roots
from servers.filesystem import server
from servers.filesystem import settings as settings_module
from servers.filesystem.features.edit import read_only
from servers.filesystem.history import recording
from servers.filesystem.server import app
from servers.filesystem.settings import Narrowing, Settings
from shared.program.messages import missing_extra_message
from shared.program.settings.settings_file import make_absolute
from tests.servers.filesystem.conftest import SECRET
from tests.servers.filesystem.serving import cursor_of, inside, uri_of
from tests.servers.peers import AskedPeer, InnerWire, Json, ada_and_bob, record, settings_of, wired_inside
from tests.shared.server.peer import STATELESS, talking

GIVEN = [
    ({"roots": ["a", "b"]}, {"a": False, "b": False}),
    ({"roots": ["a"], "allow_write": True}, {"a": True}),
    ({"roots": ["a"], "root": ["b:rw"]}, {"a": False, "b": True}),
    ({"root": ["a:ro", "b"], "allow_write": True}, {"a": False, "b": True}),
    ({"root": ["a"]}, {"a": False}),
    ({"roots": ["c:rw"]}, {"c:rw": False}),
    ({"root": ["c:rw:ro"]}, {"c:rw": False}),
]


@pytest.fixture
def folders(tmp_path, monkeypatch):
    for name in ("a", "b", "c:rw"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("folders")
def test_each_directory_has_its_own_permission():
    for given, directories in GIVEN:
        settings = Settings(**given)
        assert {str(path): writable for path, writable in settings.directories} == directories, given
        assert settings.writes == any(directories.values())
        assert (read_only(settings) is None) == settings.writes
    assert [path for path, _ in Settings(root=["a:rw"], roots=["b"]).directories] == [Path("b"), Path("a")]


def test_a_tilde_with_an_unknown_user_is_not_a_directory():
    with pytest.raises(ValidationError, match="~nobody-of-that-name is not a directory"):
        Settings(roots=[Path("~nobody-of-that-name")])


@pytest.mark.usefixtures("folders")
def test_one_existing_directory_is_enough():
    Settings(roots=["none", "a"], root=["nowhere:rw"])
    for given in ({"roots": ["none"]}, {"root": ["nowhere:rw"]}, {"roots": ["none", __file__]}):
        with pytest.raises(ValidationError, match="is not a directory"):
            Settings(**given)
    with pytest.raises(ValidationError, match="write DIR, DIR:ro or DIR:rw"):
        Settings(roots=["a"], root=["b:wr"])


@pytest.mark.parametrize("name", ["~", "~Folder", "~nobody-of-that-name", "~root"])
def test_a_relative_name_may_begin_with_a_tilde(tmp_path, monkeypatch, name):
    (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    for given in ({"roots": [f"./{name}"]}, {"root": [f"./{name}:ro"]}):
        settings = Settings(**given)
        assert Roots([path for path, _ in settings.directories]).paths == (tmp_path.resolve() / name,)


def test_a_tilde_without_a_user_is_part_of_the_name(tmp_path, monkeypatch):
    (tmp_path / "~Folder").mkdir()
    monkeypatch.chdir(tmp_path)
    assert Roots(Settings(roots=[Path("~Folder")]).roots).paths == (tmp_path.resolve() / "~Folder",)


def test_a_tilde_in_a_settings_file_is_part_of_the_name(tmp_path):
    (tmp_path / "~Folder").mkdir()
    paths = make_absolute(["./~Folder"], Settings.model_fields["roots"], tmp_path, "settings.toml")
    assert paths == [str(tmp_path / "~Folder")]


async def test_every_option_reaches_its_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    opened = record(monkeypatch, server, "open_files", "narrow_to_roots")
    denied, histories = record(monkeypatch, settings_module, "Denylist"), record(monkeypatch, recording, "History")
    options = """a --root b:rw --deny d --allow .env --disable-tool search_files --max-read 5000 --poll --client-roots
    --undo-dir u --undo-size 2 --undo-days 3"""
    async with inside(*options.split()) as peer:
        names = {tool["name"] for tool in (await peer.request("tools/list"))["result"]["tools"]}
    paths, writable, _, denylist, *reading = opened["open_files"]
    assert (paths, writable, reading) == ((Path("a"), Path("b")), (False, True), [5_000, True])
    assert isinstance(denylist, Denylist)
    assert denied["Denylist"] == (["d"], [".env"])
    assert histories["History"] == (recording.HistoryOptions(Path("u"), 2 << 20, 3),)
    assert "narrow_to_roots" in opened
    assert {"search_content", "undo", "write_file"} <= names
    assert "search_files" not in names


# The roots of clients


ROOTS = {"roots": {"listChanged": True}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The operator's directory, with two projects and a secret beside them."""
    for name in ("project/sub", "other"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "project" / "sub" / "file.txt").write_text("mine")
    (tmp_path / "other" / "file.txt").write_text("other")
    (tmp_path / "secret.txt").write_text(SECRET)
    return tmp_path


def named(*paths: Path) -> Json:
    return {"roots": [{"uri": uri_of(path)} for path in paths]}


class RootsPeer(AskedPeer):
    """A client that answers roots/list."""

    roots: Json

    def answer(self, asked: Json) -> Json:
        """Answer roots/list."""
        self.questions.append(asked["method"])
        return self.roots

    async def use(self, roots: Json) -> None:
        """Change the roots of the client."""
        self.roots = roots
        if self.era != STATELESS:
            await self.wire.client.notify("notifications/roots/list_changed")

    async def allowed(self) -> list[str]:
        """The allowed directories of this client, as lines."""
        return (await self.text("list_allowed_directories")).splitlines()[1:]

    async def code(self, method: str, uri: str) -> int:
        """The error code of a request for a resource."""
        answer = await self.request(method, {"uri": uri})
        return int(answer["error"]["code"])


@asynccontextmanager
async def rooted(
    folder: Path, roots: Json, *options: str, era: str = "2025-11-25", capabilities: Json = ROOTS
) -> AsyncIterator[RootsPeer]:
    async with wired_inside(app, "--client-roots", *options, folder, era=era, capabilities=capabilities) as wire:
        peer = RootsPeer(wire, era, "")
        peer.roots, wire.answers["roots/list"] = roots, peer.answer
        yield peer


both_eras = pytest.mark.parametrize("era", ["2025-11-25", STATELESS])


@both_eras
async def test_roots_of_a_client_narrow_those_of_the_operator(folder: Path, era: str) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "file.txt").write_text(SECRET)
    async with rooted(folder, named(folder / "project"), era=era) as peer:
        assert await peer.allowed() == [f"{folder}/project (read only)"]
        for path in ("sub/file.txt", str(folder / "project/sub/file.txt")):
            assert await peer.text("read_text_file", path=path) == "mine"
        for path in ("secret.txt", "other/file.txt", "none", "project/../secret.txt", "/etc/passwd"):
            assert (await peer.text("read_text_file", path=str(folder / path))).startswith("outside_roots: "), path
            missing = await peer.code("resources/read", (folder / path).as_uri())
            assert missing == (-32602 if era == STATELESS else -32002)
        assert len(peer.questions) == (1 if era == "2025-11-25" else 13)


@both_eras
async def test_roots_of_a_client_give_no_access_beyond_the_operators(folder: Path, era: str) -> None:
    nothing = "none, because none of the client's roots is in a directory of this server"
    async with rooted(folder, named(), era=era) as peer:
        for roots, lines in (
            (named(), [nothing]),
            (named(Path("/")), [f"{folder} (read only)"]),
            (named(Path("/usr")), [nothing]),
            (named(folder.parent), [f"{folder} (read only)"]),
            ({"roots": [{"uri": "https://example.org"}]}, [nothing]),
            (
                named(folder / "other", folder / "project/sub"),
                [f"{folder}/{one} (read only)" for one in ("other", "project/sub")],
            ),
        ):
            await peer.use(roots)
            assert await peer.allowed() == lines
            secret = await peer.text("read_text_file", path=str(folder / "secret.txt"))
            assert secret == SECRET if lines == [f"{folder} (read only)"] else secret.startswith("outside_roots: ")
            for path in ("/etc/passwd", "/usr"):
                assert (await peer.text("list_directory", path=path)).startswith("outside_roots: "), path


async def test_a_client_without_roots_uses_those_of_the_operator(folder: Path) -> None:
    for options, capabilities in (((), {}), (("--no-client-roots",), ROOTS)):
        async with rooted(folder, named(), *options, capabilities=capabilities) as peer:
            assert await peer.allowed() == [f"{folder} (read only)"]
            assert peer.questions == []


async def test_stateless_requests_that_can_not_ask_for_roots_get_nothing(folder: Path) -> None:
    for capabilities, count in (({"roots": {}}, 0), ({}, 4)):
        async with rooted(folder, named(), era=STATELESS, capabilities=capabilities) as peer:
            assert len((await peer.request("resources/list", {}))["result"]["resources"]) == count
            requested = {"notifications": {"resourceSubscriptions": [uri_of(folder / "secret.txt")]}}
            await peer.wire.client.begin("subscriptions/listen", requested)
            acknowledged = (await peer.wire.client.receive())["params"]["notifications"]
    assert acknowledged == requested["notifications"]


async def test_a_client_gets_no_updates_from_outside_its_roots(folder: Path) -> None:
    uri, inner = uri_of(folder), uri_of(folder / "project/sub/file.txt")
    async with rooted(folder, named(folder / "project")) as peer:
        for address in (f"{uri}/secret.txt", f"{uri}/*.txt", uri):
            assert await peer.code("resources/subscribe", address) == -32002
        cursor = await cursor_of(peer)
        await peer.request("resources/list", {})
        for address in (inner, f"{uri}/project/**/*.py"):
            assert (await peer.request("resources/subscribe", {"uri": address}))["result"] == {}
        (folder / "secret.txt").write_text("new")
        (folder / "project/sub/file.txt").write_text("new")
        assert (await peer.wire.client.other("notifications/resources/updated"))["params"]["uri"] == inner
        (folder / "project/sub/a.py").touch()
        update = await peer.wire.client.other("notifications/resources/updated")
        assert update["params"]["uri"] == f"{uri}/project/**/*.py"
        (folder / "project/new.txt").touch()
        await peer.wire.client.other("notifications/resources/list_changed")
        *changes, _ = (await peer.text("changes", cursor=cursor, wait=9)).splitlines()
        assert all(f" {folder}/project/" in change for change in changes)
        assert (await peer.text("changes", path=str(folder))).startswith("outside_roots: ")


async def test_the_subscription_of_another_client_opens_no_path_outside_the_roots(folder: Path) -> None:
    (folder / "project" / "link").symlink_to("../secret.txt")
    link = {"uri": uri_of(folder) + "/project/link"}
    async with (
        app.open(settings_of(app, "--client-roots", folder)) as running,
        talking(running) as plain,
        talking(running, capabilities=ROOTS) as client,
    ):
        assert (await plain.request("resources/subscribe", link))["result"] == {}
        wire = InnerWire(client)
        wire.answers["roots/list"] = lambda _: named(folder / "project")
        assert (await wire.request("resources/subscribe", link))["error"]["code"] == -32002


async def test_a_write_of_a_client_with_roots_is_told_under_the_operators_directory(folder: Path) -> None:
    written: list[str] = []
    async with (
        app.open(settings_of(app, "--client-roots", "--allow-write", folder)) as running,
        talking(running, capabilities=ROOTS) as client,
    ):
        wire = InnerWire(client)
        wire.answers["roots/list"] = lambda _: named(folder / "project")
        running.state.journal.on_own_write = lambda place: written.append(running.state.uri(place))
        await wire.request("tools/call", {"name": "write_file", "arguments": {"path": "new.txt", "content": "x"}})
    assert written == [uri_of(folder / "project/new.txt")]


# Directories of a principal


OF_OTHERS = "nobody else may read this"


@pytest.fixture
def of_two(tmp_path: Path) -> Path:
    for name in ("ada", "ada/private", "bob"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file.txt").write_text("of ada" if name == "ada" else OF_OTHERS)
    return tmp_path


def in_ada(settings: Settings, of_two: Path) -> Settings:
    return settings.narrow(Narrowing(roots=[of_two / "ada"]))


async def test_a_principal_can_access_its_directories_only(of_two: Path) -> None:
    settings = Settings(roots=[of_two])
    async with ada_and_bob(app, settings, in_ada(settings, of_two)) as (ada, bob):
        assert await ada.text("read_text_file", path=str(of_two / "ada/file.txt")) == "of ada"
        for path in ("bob/file.txt", "ada/../bob/file.txt", "none", "bob/none"):
            text = await ada.text("read_text_file", path=str(of_two / path))
            assert OF_OTHERS not in text
            assert "outside" in text
        assert str(of_two) + "/ada" in await ada.text("list_allowed_directories")
        assert "bob" not in await ada.text("list_allowed_directories")
        assert await bob.text("read_text_file", path=str(of_two / "bob/file.txt")) == OF_OTHERS
        listed = (await ada.request("resources/list"))["result"]["resources"]
        assert listed
        assert all(one["uri"].startswith(f"file://{of_two}/ada") for one in listed)
        templates = (await ada.request("resources/templates/list"))["result"]["resourceTemplates"]
        ref = {"type": "ref/resource", "uri": templates[0]["uriTemplate"]}
        params = {"ref": ref, "argument": {"name": "path", "value": f"{of_two}/"}}
        completed = (await ada.request("completion/complete", params))["result"]["completion"]
        assert not any("bob" in value for value in completed["values"])


async def test_directories_of_a_principal_keep_permissions_and_denials(of_two: Path) -> None:
    closed = Settings(roots=[of_two], deny=["ada/private"])
    async with ada_and_bob(app, closed, in_ada(closed, of_two)) as (ada, _):
        assert OF_OTHERS not in await ada.text("read_text_file", path=str(of_two / "ada/private/file.txt"))
    settings = Settings(roots=[of_two], root=[f"{of_two}/ada/private:ro"], allow_write=True)
    async with ada_and_bob(app, settings, in_ada(settings, of_two)) as (ada, _):
        await ada.call("write_file", path=str(of_two / "ada/new.txt"), content="x")
        await ada.call("write_file", path=str(of_two / "ada/private/new.txt"), content="x")
    assert (of_two / "ada/new.txt").exists()
    assert not (of_two / "ada/private/new.txt").exists()


async def test_a_principal_may_have_no_directory(of_two: Path) -> None:
    settings = Settings(roots=[of_two])
    async with ada_and_bob(app, settings, settings.narrow(Narrowing(roots=[]))) as (ada, _):
        assert "of ada" not in await ada.text("read_text_file", path=str(of_two / "ada/file.txt"))


@pytest.mark.parametrize("root", ["..", "missing", "file.txt", "link"])
def test_directories_of_a_principal_must_be_inside_those_of_the_server(root: str, of_two: Path) -> None:
    (of_two / "ada" / "link").symlink_to(of_two / "bob")
    settings = Settings(roots=[of_two / "ada"])
    with pytest.raises(ValueError, match=r"is not in any directory|is not a directory"):
        settings.narrow(Narrowing(roots=[of_two / "ada" / root]))


def test_roots_of_clients_and_of_principals_can_not_be_combined(of_two: Path) -> None:
    with pytest.raises(ValueError, match="client-roots"):
        Settings(roots=[of_two], client_roots=True).narrow(Narrowing(roots=[of_two]))


def test_an_error_about_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    # None in sys.modules makes the import fail as if the package were missing.
    monkeypatch.setitem(sys.modules, "re2", None)
    with pytest.raises(ValidationError, match=re.escape(missing_extra_message("filesystem"))):
        Settings()
