"""What the operator says, and what it means; and with `--client-roots`, where the roots of a client meet it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from pydantic import ValidationError

from servers.filesystem.features.edit import read_only
from servers.filesystem.server import app
from servers.filesystem.settings import Settings
from tests.servers.filesystem.conftest import SECRET
from tests.servers.filesystem.serving import cursor_of, uri_of
from tests.servers.peers import AskedPeer, InnerWire, Json, settings_of, wired_inside
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
def test_each_directory_has_its_permission():
    for given, directories in GIVEN:
        settings = Settings(**given)
        assert {str(path): writable for path, writable in settings.directories} == directories, given
        assert settings.writes == any(directories.values())
        assert (read_only(settings) is None) == settings.writes
    assert [path for path, _ in Settings(root=["a:rw"], roots=["b"]).directories] == [Path("b"), Path("a")]


def test_a_home_that_nobody_has_is_no_directory():
    with pytest.raises(ValidationError, match="~nobody-of-that-name is not a directory"):
        Settings(roots=[Path("~nobody-of-that-name")])


# The roots of clients


ROOTS = {"roots": {"listChanged": True}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory for the operator: with a project, another one, and a secret beside them."""
    for name in ("project/sub", "other"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "project" / "sub" / "file.txt").write_text("mine")
    (tmp_path / "other" / "file.txt").write_text("other")
    (tmp_path / "secret.txt").write_text(SECRET)
    return tmp_path


def named(*paths: Path) -> Json:
    return {"roots": [{"uri": uri_of(path)} for path in paths]}


class RootsPeer(AskedPeer):
    """A client that names its roots when it is asked."""

    roots: Json

    def answer(self, asked: Json) -> Json:
        """Its roots."""
        self.questions.append(asked["method"])
        return self.roots

    async def use(self, roots: Json) -> None:
        """Has other roots from now on."""
        self.roots = roots
        if self.era != STATELESS:
            await self.wire.client.notify("notifications/roots/list_changed")

    async def allowed(self) -> list[str]:
        """The lines that tell where this client may work."""
        return (await self.text("list_allowed_directories")).splitlines()[1:]

    async def code(self, method: str, uri: str) -> int:
        """The code of the error that a request for a resource ends with."""
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
async def test_f18_the_roots_of_a_client_narrow_those_of_the_operator(folder: Path, era: str) -> None:
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
async def test_f18_roots_give_nothing_that_the_operator_does_not(folder: Path, era: str) -> None:
    nothing = "none, since no root of the client is in a directory of this server"
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


async def test_who_has_no_roots_or_is_not_to_be_asked_works_in_those_of_the_operator(folder: Path) -> None:
    for options, capabilities in (((), {}), (("--no-client-roots",), ROOTS)):
        async with rooted(folder, named(), *options, capabilities=capabilities) as peer:
            assert await peer.allowed() == [f"{folder} (read only)"]
            assert peer.questions == []


async def test_without_a_session_what_can_not_ask_gives_nothing(folder: Path) -> None:
    for capabilities, count in (({"roots": {}}, 0), ({}, 4)):
        async with rooted(folder, named(), era=STATELESS, capabilities=capabilities) as peer:
            assert len((await peer.request("resources/list", {}))["result"]["resources"]) == count
            wanted = {"notifications": {"resourceSubscriptions": [uri_of(folder / "secret.txt")]}}
            await peer.wire.client.begin("subscriptions/listen", wanted)
            acknowledged = (await peer.wire.client.receive())["params"]["notifications"]
    assert acknowledged == wanted["notifications"]


async def test_w16_of_what_is_outside_of_the_roots_nothing_is_told(folder: Path) -> None:
    uri, inner = uri_of(folder), uri_of(folder / "project/sub/file.txt")
    async with rooted(folder, named(folder / "project")) as peer:
        for one in (f"{uri}/secret.txt", f"{uri}/*.txt", uri):
            assert await peer.code("resources/subscribe", one) == -32002
        cursor = await cursor_of(peer)
        await peer.request("resources/list", {})
        for one in (inner, f"{uri}/project/**/*.py"):
            assert (await peer.request("resources/subscribe", {"uri": one}))["result"] == {}
        (folder / "secret.txt").write_text("new")
        (folder / "project/sub/file.txt").write_text("new")
        assert (await peer.wire.client.other("notifications/resources/updated"))["params"]["uri"] == inner
        (folder / "project/sub/a.py").touch()
        told = await peer.wire.client.other("notifications/resources/updated")
        assert told["params"]["uri"] == f"{uri}/project/**/*.py"
        (folder / "project/new.txt").touch()
        await peer.wire.client.other("notifications/resources/list_changed")
        *changes, _ = (await peer.text("changes", cursor=cursor, wait=9)).splitlines()
        assert all(f" {folder}/project/" in change for change in changes)
        assert (await peer.text("changes", path=str(folder))).startswith("outside_roots: ")


async def test_w9_what_another_client_subscribes_to_through_a_link_is_no_way_in(folder: Path) -> None:
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
