"""Questions to the user before files are changed."""

import sys
from pathlib import Path

import pytest

from servers.filesystem.server import app
from tests.servers.filesystem.features.test_edit import edits
from tests.servers.filesystem.serving import confirming
from tests.servers.peers import FORMS, AskedPeer, Json, consented, text_of, wired_inside
from tests.wire import STATELESS, Wire

both_eras = pytest.mark.parametrize("era", ["2025-11-25", STATELESS])


async def test_the_user_is_asked_before_a_file_is_overwritten_or_deleted(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    command = [sys.executable, "-m", "servers.filesystem", "--allow-write", "--confirm", str(tmp_path)]
    async with Wire(command) as wire:
        peer = AskedPeer(wire, "2025-06-18", "accept accept")
        wire.answers["elicitation/create"] = peer.answer
        await wire.initialize("2025-06-18", FORMS)
        assert (await peer.text("write_file", path="a", content="!")).startswith("Replaced a: ")
        assert (tmp_path / "a").read_text() == "!"
        assert await peer.text("delete_file", path="a") == "Deleted a: 1 entry"
    path = tmp_path.resolve() / "a"
    overwrite = f"Overwrite {path} with 1 character? It has 3 bytes now."
    assert peer.questions == [overwrite, f"Delete {path} (1 byte)?"]
    assert list(tmp_path.iterdir()) == []


@both_eras
async def test_declined_and_cancelled_changes_are_not_made(tmp_path: Path, era: str) -> None:
    (tmp_path / "a").write_text("old")
    async with confirming(tmp_path, era=era, actions="decline cancel cancel decline") as peer:
        for tool, more in (("write_file", {"content": "new"}), ("delete_file", {})) * 2:
            assert (await peer.text(tool, path="a", **more)).startswith("declined: ")
    assert (tmp_path / "a").read_text() == "old"


ACTS: list[tuple[str, Json]] = [
    ("delete_file", {"path": "a"}),
    ("write_file", {"path": "a", "content": "new"}),
    ("write_file", {"path": "a", "content": "new", "mode": "append"}),
    ("edit_file", {"path": "a", "edits": edits("o", "new", count=0)}),
    ("move_file", {"source": "a", "destination": "b"}),
    ("copy_file", {"source": "a", "destination": "b"}),
]


@both_eras
async def test_consent_does_not_cover_a_file_changed_since_the_question(tmp_path: Path, era: str) -> None:
    file = tmp_path / "a"

    def meanwhile() -> None:
        if file.read_text() == "oo":
            file.write_text("those")

    # A stateless server asks the user again.
    expected = "declined: " if era == STATELESS else "changed: a: "
    actions = ("accept decline " if era == STATELESS else "accept ") * len(ACTS)
    async with confirming(tmp_path, era=era, actions=actions, meanwhile=meanwhile) as peer:
        for tool, arguments in ACTS:
            file.write_text("oo")
            assert (await peer.text(tool, **arguments)).startswith(expected), tool
            assert [(entry.name, entry.read_text()) for entry in tmp_path.iterdir()] == [("a", "those")]


async def test_consent_to_create_does_not_cover_a_file_created_since(tmp_path: Path) -> None:
    new = tmp_path / "new"
    (tmp_path / "a").write_text("a")
    acts: list[tuple[str, Json]] = [
        ("write_file", {"path": "new", "content": "x"}),
        ("write_file", {"path": "new", "content": "x", "mode": "append"}),
        ("move_file", {"source": "a", "destination": "new"}),
        ("copy_file", {"source": "a", "destination": "new"}),
    ]
    actions = "accept " * len(acts)
    async with confirming(tmp_path, actions=actions, meanwhile=lambda: new.write_text("theirs")) as peer:
        for tool, arguments in acts:
            new.unlink(missing_ok=True)
            assert (await peer.text(tool, **arguments)).startswith("already_exists: new: "), tool
            assert new.read_text() == "theirs"


@pytest.mark.parametrize(
    ("tool", "agreed", "other"),
    [
        ("write_file", {"path": "new", "content": "x"}, {"path": "new", "content": "y"}),
        ("write_file", {"path": "a", "content": "x"}, {"path": "a", "content": "y"}),
        ("edit_file", *({"path": "a", "edits": edits("old", "x" * 1_000 + end)} for end in "xy")),
    ],
)
async def test_consent_does_not_cover_other_arguments_with_the_same_question(
    tmp_path: Path, tool: str, agreed: Json, other: Json
) -> None:
    (tmp_path / "a").write_text("old")
    async with wired_inside(app, "--allow-write", "--confirm", tmp_path, era=STATELESS) as wire:
        assert (await consented(wire, tool, agreed, other))["resultType"] == "input_required"
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("a", "old")]


async def test_calls_that_change_nothing_or_fail_ask_no_question(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    async with confirming(tmp_path) as peer:
        assert "+b" in await peer.text("edit_file", path="a", edits=edits("a", "b"), dryRun=True)
        assert "no change" in await peer.text("edit_file", path="a", edits=edits("a", "a"))
        assert (await peer.text("create_directory", path=".")).endswith("already exists")
        for tool, arguments, code in (
            ("write_file", {"path": "a", "content": "x", "mode": "create"}, "already_exists"),
            ("write_file", {"path": "a", "content": "x", "if_match": "0" * 16}, "changed"),
            ("edit_file", {"path": "a", "edits": edits("none", "x")}, "no_match"),
            ("move_file", {"source": "none", "destination": "b"}, "not_found"),
            ("copy_file", {"source": "a", "destination": "a"}, "already_exists"),
            ("delete_file", {"path": "none"}, "not_found"),
        ):
            assert (await peer.text(tool, **arguments)).startswith(f"{code}: "), tool
    assert peer.questions == []


async def test_the_question_before_an_edit_shows_its_diff(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old\n")
    async with confirming(tmp_path, actions="accept") as peer:
        await peer.text("edit_file", path="a", edits=edits("old", "new"))
    path = tmp_path.resolve() / "a"
    assert peer.questions == [f"Change {path}?\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-old\n+new\n"]


@pytest.mark.parametrize("era", ["2024-11-05", "2025-11-25", STATELESS])
async def test_a_change_is_refused_if_the_client_can_not_ask_the_user(tmp_path: Path, era: str) -> None:
    (tmp_path / "a").write_text("old")
    async with wired_inside(app, "--allow-write", "--confirm", tmp_path, era=era, capabilities={}) as wire:
        answer = await wire.request("tools/call", {"name": "delete_file", "arguments": {"path": "a"}})
    assert text_of(answer["result"]).startswith("cannot_confirm: ")
    assert (tmp_path / "a").read_text() == "old"
