"""The tools that change files, through the front door: parallel calls, and questions to the user."""

import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.servers.peers import FORMS, AskedPeer, Json
from tests.wire import STATELESS, Wire

ERAS = [pytest.param("2025-06-18", marks=pytest.mark.slow), "2025-11-25", STATELESS]
every_era = pytest.mark.parametrize("era", ERAS)


@asynccontextmanager
async def served(folder: Path, era: str = "2025-11-25", *options: str, actions: str = "") -> AsyncIterator[AskedPeer]:
    command = [sys.executable, "-m", "servers.filesystem", "--allow-write", *options, str(folder)]
    async with Wire(command) as wire:
        peer = AskedPeer(wire, era, actions)
        wire.answers["elicitation/create"] = peer.answer
        if era != STATELESS:
            await wire.initialize(era, FORMS)
        yield peer


def etag_in(text: str) -> str:
    found = re.search(r"etag ([0-9a-f]{16})", text)
    assert found is not None, text
    return found[1]


def edits(old: str, new: str, **more: Any) -> list[Json]:
    return [{"oldText": old, "newText": new, **more}]


async def test_f14_thirty_parallel_edits_are_all_applied(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("".join(f"<{i}>\n" for i in range(30)))
    async with served(tmp_path) as peer:
        for i in range(30):
            arguments = {"path": "a", "edits": edits(f"<{i}>", f"[{i}]")}
            params = {"name": "edit_file", "arguments": arguments}
            await peer.wire.send({"jsonrpc": "2.0", "id": f"e{i}", "method": "tools/call", "params": params})
        answers = [await peer.wire.response(f"e{i}") for i in range(30)]
    assert not [answer for answer in answers if answer["result"].get("isError")]
    assert (tmp_path / "a").read_text() == "".join(f"[{i}]\n" for i in range(30))


async def test_f14_of_thirty_parallel_edits_of_one_version_one_is_applied_and_the_others_say_so(
    tmp_path: Path,
) -> None:
    async with served(tmp_path) as peer:
        etag = etag_in(await peer.text("write_file", path="a", content="<>"))
        for i in range(30):
            arguments = {"path": "a", "edits": edits("<", f"{i}<"), "if_match": etag}
            params = {"name": "edit_file", "arguments": arguments}
            await peer.wire.send({"jsonrpc": "2.0", "id": f"e{i}", "method": "tools/call", "params": params})
        results = [(await peer.wire.response(f"e{i}"))["result"] for i in range(30)]
    applied = [i for i, result in enumerate(results) if not result.get("isError")]
    refused = [result for result in results if result.get("isError")]
    assert len(applied) == 1
    assert all(result["content"][0]["text"].startswith("changed: a: ") for result in refused)
    assert (tmp_path / "a").read_text() == f"{applied[0]}<>"


async def test_the_modes_of_writing(tmp_path: Path) -> None:
    async with served(tmp_path) as peer:
        for mode, did in (("create", "Created"), ("append", "Appended to"), ("overwrite", "Replaced")):
            assert (await peer.text("write_file", path="a", content="x", mode=mode)).startswith(f"{did} a: ")
        assert (await peer.text("write_file", path="a", content="", mode="create")).startswith("already_exists: a: ")


async def test_several_files_are_edited_or_none(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_text(f"{name}{name}\n")
    files = [{"path": name, "edits": edits(name, "x", count=2)} for name in "ab"]
    async with served(tmp_path) as peer:
        assert (await peer.text("edit_file", files=[*files, {**files[0], "path": "c"}])).startswith("not_found: c: ")
        assert [(tmp_path / name).read_text() for name in "ab"] == ["aa\n", "bb\n"]
        text = await peer.text("edit_file", files=files)
    assert re.findall(r"^(\w: .* bytes|[-+]\w.*)", text, re.MULTILINE) == [
        *("a: 3 bytes", "-aa", "+xx"),
        *("b: 3 bytes", "-bb", "+xx"),
    ]


async def test_an_edit_is_of_one_file_or_of_several(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    async with served(tmp_path) as peer:
        for arguments in (
            {},
            {"path": "a"},
            {"path": "a", "edits": edits("a", "b"), "files": [{"path": "a", "edits": edits("a", "b")}]},
        ):
            assert "give either path and edits, or files" in await peer.text("edit_file", **arguments)
    assert (tmp_path / "a").read_text() == "a"


async def test_a_dry_run_tells_the_etag_of_what_it_saw(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    async with served(tmp_path) as peer:
        etag = etag_in(await peer.text("edit_file", path="a", edits=edits("a", "b"), dryRun=True))
        assert "+b" in await peer.text("edit_file", path="a", edits=edits("a", "b"), if_match=etag)
    assert (tmp_path / "a").read_text() == "b"


@pytest.mark.parametrize("old", ["a", "\x01"])
async def test_a_large_diff_is_cut_and_the_edit_made(tmp_path: Path, old: str) -> None:
    (tmp_path / "a").write_text(f"{old}\n" * 50_000)
    async with served(tmp_path, "2025-11-25", "--max-result", "20000") as peer:
        text = await peer.text("edit_file", path="a", edits=edits(old, "b", count=0))
    assert len(json.dumps(text)) < 20_000
    assert text.endswith("characters of the diff shown]")
    assert (tmp_path / "a").read_text() == "b\n" * 50_000


async def test_f11_the_operator_may_allow_protected_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    (tmp_path / "a").chmod(0o444)
    async with served(tmp_path) as peer:
        assert (await peer.text("write_file", path="a", content="b")).startswith("read_only: a: ")
    async with served(tmp_path, "2025-11-25", "--replace-protected") as peer:
        assert (await peer.text("write_file", path="a", content="b")).startswith("Replaced a: ")


# Questions


@every_era
async def test_the_user_is_asked_before_a_file_is_overwritten_or_deleted(tmp_path: Path, era: str) -> None:
    (tmp_path / "a").write_text("old")
    async with served(tmp_path, era, "--confirm", actions="accept accept") as peer:
        assert (await peer.text("write_file", path="a", content="new")).startswith("Replaced a: ")
        assert (tmp_path / "a").read_text() == "new"
        assert await peer.text("delete_file", path="a") == "Deleted a: 1 entry"
    path = tmp_path.resolve() / "a"
    assert peer.questions == [
        f"Overwrite {path} with 3 characters? It has 3 bytes now.",
        f"Delete {path} (3 bytes)?",
    ]
    assert list(tmp_path.iterdir()) == []


@every_era
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_nothing_is_lost_where_the_user_does_not_agree(tmp_path: Path, era: str, action: str) -> None:
    (tmp_path / "a").write_text("old")
    async with served(tmp_path, era, "--confirm", actions=f"{action} {action}") as peer:
        assert (await peer.text("write_file", path="a", content="new")).startswith("declined: ")
        assert (await peer.text("delete_file", path="a")).startswith("declined: ")
    assert (tmp_path / "a").read_text() == "old"


@every_era
@pytest.mark.parametrize(
    "act",
    [
        ("delete_file", {"path": "a"}),
        ("write_file", {"path": "a", "content": "new"}),
        ("write_file", {"path": "a", "content": "new", "mode": "append"}),
        ("edit_file", {"path": "a", "edits": edits("o", "new", count=0)}),
        ("move_file", {"source": "a", "destination": "b"}),
        ("copy_file", {"source": "a", "destination": "b"}),
    ],
)
async def test_consent_is_to_what_was_there_when_it_was_asked_for(
    tmp_path: Path, era: str, act: tuple[str, Json]
) -> None:
    (tmp_path / "a").write_text("oo")
    async with served(tmp_path, era, "--confirm", actions="accept decline") as peer:
        plain = peer.answer

        def answer(asked: Json) -> Json:
            if not peer.questions:
                (tmp_path / "a").write_text("those")
            return plain(asked)

        peer.answer = peer.wire.answers["elicitation/create"] = answer  # type: ignore[method-assign]
        text = await peer.text(act[0], **act[1])
    # Stateless, the user is asked again.
    assert text.startswith("declined: " if era == STATELESS else "changed: a: ")
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("a", "those")]


async def test_what_changes_nothing_is_not_asked_for(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    async with served(tmp_path, "2025-11-25", "--confirm") as peer:
        assert "+b" in await peer.text("edit_file", path="a", edits=edits("a", "b"), dryRun=True)
        assert "no change" in await peer.text("edit_file", path="a", edits=edits("a", "a"))
        assert (await peer.text("create_directory", path=".")).endswith("exists already")
    assert peer.questions == []


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("write_file", {"path": "a", "content": "x", "mode": "create"}, "already_exists"),
        ("write_file", {"path": "a", "content": "x", "if_match": "0" * 16}, "changed"),
        ("edit_file", {"path": "a", "edits": edits("none", "x")}, "no_match"),
        ("move_file", {"source": "none", "destination": "b"}, "not_found"),
        ("copy_file", {"source": "a", "destination": "a"}, "already_exists"),
        ("delete_file", {"path": "none"}, "not_found"),
    ],
)
async def test_what_fails_is_not_asked_for(tmp_path: Path, tool: str, arguments: Json, code: str) -> None:
    (tmp_path / "a").write_text("a")
    async with served(tmp_path, "2025-11-25", "--confirm") as peer:
        assert (await peer.text(tool, **arguments)).startswith(f"{code}: ")
    assert peer.questions == []


async def test_a_user_sees_what_an_edit_changes(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old\n")
    async with served(tmp_path, "2025-11-25", "--confirm", actions="accept") as peer:
        await peer.text("edit_file", path="a", edits=edits("old", "new"))
    path = tmp_path.resolve() / "a"
    assert peer.questions == [f"Change {path}?\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-old\n+new\n"]


@pytest.mark.parametrize("era", ["2024-11-05", "2025-11-25", STATELESS])
async def test_where_the_client_can_not_ask_it_is_refused(tmp_path: Path, era: str) -> None:
    (tmp_path / "a").write_text("old")
    command = [sys.executable, "-m", "servers.filesystem", "--allow-write", "--confirm", str(tmp_path)]
    params = {"name": "delete_file", "arguments": {"path": "a"}}
    async with Wire(command) as wire:
        if era == STATELESS:
            answer = await wire.stateless("tools/call", params)
        else:
            await wire.initialize(era)
            answer = await wire.request("tools/call", params)
    assert answer["result"]["content"][0]["text"].startswith("cannot_confirm: ")
    assert (tmp_path / "a").read_text() == "old"
