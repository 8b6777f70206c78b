"""The server: preparation at startup, and notifications of changes to clients of both eras."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from servers.prompts.server import app
from servers.prompts.settings import Settings
from shared.protocol.signing import Signer
from shared.server.run import Run
from tests.servers.prompts.folders import SIMPLE, asking, front, put
from tests.servers.prompts.serving import Follower, folder, following, got, inside, names, updates
from tests.shared.transports.http.http_wire import Site
from tests.wire import STATELESS, start_http

READY = """
import sys, anyio
from servers.prompts.server import app
from servers.prompts.settings import Settings
from shared.protocol.types.tools import ListParams

async def main():
    async with app.open(Settings(libraries=[sys.argv[1]])):
        return ListParams.__pydantic_complete__

sys.exit(not anyio.run(main))
"""


@pytest.mark.slow
def test_request_validators_are_built_at_startup(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", READY, str(tmp_path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


class NotingSigner(Signer):
    """Records its purposes."""

    def __init__(self) -> None:
        super().__init__(b"key")
        self.purposes: list[str] = []

    def sign(self, purpose: str, value: Any) -> str:
        self.purposes.append(purpose)
        return super().sign(purpose, value)


@pytest.mark.parametrize(("count", "expected"), [(2, []), (3, ["cursor:prompts"])])
async def test_the_first_cursor_is_signed_at_startup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, expected: list[str]
) -> None:
    # Nothing else shows what was made before the first request.
    signer = NotingSigner()
    monkeypatch.setattr(app, "page_size", 2)
    monkeypatch.setattr(Run, "signer", signer)
    library = folder(tmp_path, {f"{number}.md": SIMPLE for number in range(count)})
    async with app.open(Settings(libraries=[library])):
        assert signer.purposes == expected


async def test_the_starter_library_is_the_default(tmp_path: Path) -> None:
    async with inside() as peer:
        starters = await names(peer)
    assert (len(starters), "review-code" in starters) == (10, True)
    library = folder(tmp_path, {"b.md": SIMPLE})
    async with inside(library) as peer:
        assert await names(peer) == ["b"]
    async with inside("--starter", library) as peer:
        assert await names(peer) == ["b", *starters]


@pytest.mark.slow
async def test_clients_of_both_eras_see_the_same_prompts(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "servers.prompts",
        str(folder(tmp_path, {"a.md": asking("{{ code }} {{ count }}", "code", "count"), "b.md": SIMPLE})),
    ]
    async with start_http(command) as url, httpx.AsyncClient(base_url=url, trust_env=False, timeout=30) as client:
        site = Site(app, 0, anyio.Event(), client)
        session = await site.initialize("2025-11-25")
        for method, params, key in [
            ("prompts/list", {}, "prompts"),
            ("prompts/get", {"name": "a", "arguments": {"code": "x", "count": "2"}}, "messages"),
        ]:
            legacy = (await site.post(site.message(method, params), session)).json()["result"]
            modern = (await site.post(*site.stateless(method, params))).json()["result"]
            assert legacy[key] == modern[key] != []


# Changes


both_eras = pytest.mark.parametrize("era", ["2025-11-25", STATELESS])


async def text_of(follower: Follower, name: str) -> str:
    """Returns the text of the first message of a prompt."""
    text: str = (await got(follower.peer, name))[0]["content"]["text"]
    return text


@both_eras
async def test_each_change_by_an_editor_sends_one_notification(
    tmp_path: Path, era: str, caplog: pytest.LogCaptureFixture
) -> None:
    lib = folder(
        tmp_path / "lib", {"a.md": front(body="Old."), **{f"old/{number}.md": SIMPLE for number in range(9)}}
    )
    async with following(era, lib, lists=True) as follower:
        await names(follower.peer)
        (lib / ".a.md.swp").write_text(front(body="New."))
        (lib / ".a.md.swp").replace(lib / "a.md")
        await follower.changed()
        assert await text_of(follower, "a") == "New."
        with (lib / "b.md").open("w") as file:
            file.write("---\ndescription: Some")
            file.flush()
            await wait_for_log(caplog, "lib: b.md:1: its front matter has no closing --- line")
            file.write("thing.\n---\nSay it.")
        await follower.changed()
        assert "b" in await names(follower.peer)
        put(lib, {"a.md": "---\ndescription: ["})
        await wait_for_log(caplog, "lib: a.md:1: its front matter has no closing --- line")
        assert await text_of(follower, "a") == "New."
        (lib / "old").rename(lib / "new")
        await follower.changed()
        assert await names(follower.peer) == ["a", "b", *(f"new-{number}" for number in range(9))]
        (lib / "b.md").unlink()
        await follower.changed()
        assert "b" not in await names(follower.peer)
        assert (await follower.peer.request("prompts/get", name="b"))["error"]["code"] == -32602
    assert str(tmp_path) not in caplog.text


async def wait_for_log(caplog: pytest.LogCaptureFixture, text: str) -> None:
    """Waits for this text in the log of the operator."""
    with anyio.fail_after(30):
        while text not in caplog.text:
            await anyio.sleep(0.001)


@both_eras
async def test_subscribers_get_updates_of_affected_resources_only(tmp_path: Path, era: str) -> None:
    lib = folder(
        tmp_path / "lib", {"a.md": front(body="{% include '_part.md' %}"), "_part.md": "x", "b c.md": SIMPLE}
    )
    written = "prompt://b%20c/rendered?x=%201&y=2"
    uris = ("prompt://a", "prompt://a/rendered", "prompt://a/files/c.csv", "skill://a/SKILL.md", "prompt://", written)
    async with following(era, lib, *uris) as follower:
        updated = updates(follower)
        put(lib, {"_part.md": "y"})
        assert {await anext(updated) for _ in range(5)} == set(uris) - {"prompt://a"}
        put(lib, {"a.md": SIMPLE})
        assert {await anext(updated) for _ in range(6)} == set(uris)
        put(lib, {"b c.md": front(body="New.")})
        assert "prompt://a" not in {await anext(updated) for _ in range(5)}
        put(lib, {"b c.md": "broken"})
        assert await anext(updated) == "prompt://"


@both_eras
async def test_a_restored_prompt_sends_an_update(tmp_path: Path, era: str) -> None:
    lib = folder(tmp_path / "lib", {"a.md": SIMPLE})
    async with following(era, lib, "prompt://a") as follower:
        if era != STATELESS:
            for uri in ("prompt://b", "prompt://a/b", "skill://b/SKILL.md", "file:///etc/passwd"):
                assert (await follower.peer.request("resources/subscribe", uri=uri))["error"]["code"] == -32002
        updated = updates(follower)
        (lib / "a.md").unlink()
        assert await anext(updated) == "prompt://a"
        put(lib, {"a.md": SIMPLE})
        assert await anext(updated) == "prompt://a"


async def test_a_request_sees_files_written_before_it(tmp_path: Path) -> None:
    """Behind a load balancer, another replica may have announced the change before this one scanned."""
    lib = folder(tmp_path / "lib", {"a.md": SIMPLE})
    async with inside(lib) as peer:
        assert await names(peer) == ["a"]
        for name in ("b", "c"):
            put(lib, {f"{name}.md": SIMPLE})
            assert await got(peer, name)
        (lib / "d.md").touch()  # the writer has not finished
        assert await names(peer) == ["a", "b", "c"]
        (lib / "d.md").write_text(SIMPLE)
        assert await names(peer) == ["a", "b", "c", "d"]
