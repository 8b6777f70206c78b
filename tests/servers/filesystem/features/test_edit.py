"""The tools that change files, through the protocol."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.servers.filesystem.serving import confirming, inside, served
from tests.servers.peers import Json, text_of


def etag_in(text: str) -> str:
    match = re.search(r"etag ([0-9a-f]{16})", text)
    assert match is not None, text
    return match[1]


def edits(old: str, new: str, **more: Any) -> list[Json]:
    return [{"oldText": old, "newText": new, **more}]


async def test_thirty_parallel_edits_are_all_applied(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("".join(f"<{i}>\n" for i in range(30)))
    async with inside(tmp_path, "--allow-write") as peer:
        keys = [await peer.client.start("edit_file", path="a", edits=edits(f"<{i}>", f"[{i}]")) for i in range(30)]
        answers = [await peer.client.answer(key) for key in keys]
    assert not [answer for answer in answers if answer["result"].get("isError")]
    assert (tmp_path / "a").read_text() == "".join(f"[{i}]\n" for i in range(30))


async def test_one_of_thirty_parallel_edits_with_the_same_etag_is_applied(
    tmp_path: Path,
) -> None:
    async with served(tmp_path, "2025-11-25", "--allow-write") as peer:
        etag = etag_in(await peer.text("write_file", path="a", content="<>"))
        for i in range(30):
            arguments = {"path": "a", "edits": edits("<", f"{i}<"), "if_match": etag}
            params = {"name": "edit_file", "arguments": arguments}
            await peer.wire.send({"jsonrpc": "2.0", "id": f"e{i}", "method": "tools/call", "params": params})
        results = [(await peer.wire.response(f"e{i}"))["result"] for i in range(30)]
    (applied,) = [i for i, result in enumerate(results) if not result.get("isError")]
    refused = [text_of(result) for result in results if result.get("isError")]
    assert all(text.startswith("changed: a: ") for text in refused)
    assert (tmp_path / "a").read_text() == f"{applied}<>"


async def test_write_file_reports_created_appended_and_replaced(tmp_path: Path) -> None:
    async with inside(tmp_path, "--allow-write") as peer:
        for mode, did in (("create", "Created"), ("append", "Appended to"), ("overwrite", "Replaced")):
            assert (await peer.text("write_file", path="a", content="x", mode=mode)).startswith(f"{did} a: ")
        assert (await peer.error("write_file", path="a", content="", mode="create")).startswith("already_exists: a: ")


async def test_empty_strings_count_as_omitted_arguments(tmp_path: Path) -> None:
    async with inside(tmp_path, "--allow-write") as peer:
        await peer.text("write_file", path="a", content="old\n", mode="", if_match="", encoding="")
        operation = {"oldText": "old", "newText": "new", "path": ""}
        await peer.text("edit_file", path="a", edits=[operation], dryRun="", if_match="", encoding="", patch="")
        patch = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-new\n+newer\n"
        await peer.text("edit_file", path="", edits="", patch=patch)
    assert (tmp_path / "a").read_text() == "newer\n"


@pytest.mark.parametrize(
    ("name", "mode", "expected"),
    [
        ("a.json", "overwrite", '{\n  "name": "\u00e9",\n  "versions": [\n    1.0\n  ]\n}\n'),
        ("a.JSONL", "overwrite", '{"name": "\u00e9", "versions": [1.0]}\n'),
        ("a.log", "append", '{"name": "\u00e9", "versions": [1.0]}\n'),
    ],
)
async def test_an_object_as_content_is_written_as_json(tmp_path: Path, name: str, mode: str, expected: str) -> None:
    async with inside(tmp_path, "--allow-write") as peer:
        await peer.text("write_file", path=name, content={"name": "\u00e9", "versions": [1.0]}, mode=mode)
        assert "valid string" in await peer.error("write_file", path="b", content=1)
    assert (tmp_path / name).read_text() == expected


@pytest.mark.parametrize(
    ("content", "expected", "continues"),
    [("b\n", "x\r\nab\r\n", True), ("\nb", "x\r\na\r\nb", False), ({"b": 1}, 'x\r\na\r\n{"b": 1}\r\n', False)],
)
async def test_an_appended_text_may_continue_a_line_but_an_object_begins_one(
    tmp_path: Path, content: Any, expected: str, continues: bool
) -> None:
    (tmp_path / "a").write_bytes(b"x\r\na")
    async with inside(tmp_path, "--allow-write") as peer:
        answer = await peer.text("write_file", path="a", content=content, mode="append")
    assert (tmp_path / "a").read_bytes() == expected.encode()
    assert ("continues the last line" in answer) == continues


async def test_results_name_the_charset_of_a_text_that_is_not_utf_8(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes("Le café est fermé à midi.\n".encode("cp1252"))
    async with inside(tmp_path, "--allow-write") as peer:
        results = [
            await peer.text("read_text_file", path="a"),
            await peer.text("edit_file", path="a", edits=edits("midi", "l’été"), encoding="cp1252"),
            await peer.text("write_file", path="a", content="café\n", mode="append"),
            await peer.text("search_content", path=".", pattern="café"),
        ]
        assert all("charset cp1252" in text for text in results), results
        error = await peer.error("write_file", path="a", content="5\n中")
        assert error.startswith("bad_edit: a: the file is cp1252, which has no '中'. ")
        assert "charset" not in await peer.text("write_file", path="a", content="中", encoding="utf-8")
        (tmp_path / "a").write_bytes(b"caf\xe9\n")
        error = await peer.error("edit_file", path="a", edits=edits("caf", "5 € caf"))
        assert error.startswith("unsure_charset: a: it may be cp1252 or ")
        assert error.endswith(" which have different bytes for '€'. Specify encoding.")
        assert await peer.text("read_text_file", path="a", encoding="iso8859-2") == "café\n\n[charset iso8859-2]"
        error = await peer.error("read_text_file", path="a", encoding="klingon")
        assert error.startswith("bad_encoding: a: the charset klingon is unknown. ")


async def test_the_result_of_an_edit_names_tolerated_differences(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("all:\n\tcc a.c\n")
    async with inside(tmp_path, "--allow-write") as peer:
        requested = edits("all:\n    cc a.c\n", "all:\n    cc b.c\n")
        text = await peer.text("edit_file", path="Makefile", edits=requested)
        assert "\n[edit 1 matched, ignoring indentation: 1 tab in the file for 4 spaces]\n---" in text
        assert (tmp_path / "Makefile").read_text() == "all:\n\tcc b.c\n"
        error = await peer.error("edit_file", path="Makefile", edits=edits("all:\n\tcc c.c\n", ""))
    assert "The nearest is lines 1-2: line 2 is 'cc b.c', not 'cc c.c'. Read the file again" in error


async def test_edit_file_changes_all_files_or_none(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_text(f"{name}{name}\n")
    requested = [*edits("a", "x", count=2), *edits("b", "x", count=2, path="b")]
    async with inside(tmp_path, "--allow-write") as peer:
        error = await peer.error("edit_file", path="a", edits=[*requested, *edits("c", "x", path="c")])
        assert error.startswith("not_found: c: ")
        assert [(tmp_path / name).read_text() for name in "ab"] == ["aa\n", "bb\n"]
        text = await peer.text("edit_file", path="a", edits=requested)
    assert re.findall(r"^(\w: .* bytes|[-+]\w.*)", text, re.MULTILINE) == [
        *("a: 3 bytes", "-aa", "+xx"),
        *("b: 3 bytes", "-bb", "+xx"),
    ]


async def test_edit_file_takes_either_edits_or_a_patch(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    edit = {"path": "a", "edits": edits("a", "b")}
    async with inside(tmp_path, "--allow-write") as peer:
        for arguments in ({}, {"path": "a"}, {**edit, "patch": "x"}, {"patch": "x", "if_match": "x"}):
            assert "pass either path and edits, or patch alone" in await peer.error("edit_file", **arguments)
    assert (tmp_path / "a").read_text() == "a"


async def test_an_edit_without_a_path_and_an_etag_of_an_unedited_file_are_refused(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_text("a")
    of_b = edits("a", "x", path="b")
    async with inside(tmp_path, "--allow-write") as peer:
        error = await peer.error("edit_file", edits=[*of_b, *edits("a", "x")])
        assert error == "bad_edit: edit 2 does not specify a file. Specify path."
        error = await peer.error("edit_file", path="a", edits=of_b, if_match="x")
        advice = "Pass the file that has this etag as path."
        assert error == f"bad_edit: a: if_match applies to the file at path, which no edit changes. {advice}"
        error = await peer.error("edit_file", path="a", edits=[*of_b, *edits("a", "x")], if_match="x")
        assert error.startswith("changed: a: ")
        many = [edit for number in range(101) for edit in edits("a", "x", path=str(number))]
        assert "change more than 100 files" in await peer.error("edit_file", edits=many)
    assert [(tmp_path / name).read_text() for name in "ab"] == ["a", "a"]


async def test_a_dry_run_changes_nothing_and_returns_the_current_etag(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    async with inside(tmp_path, "--allow-write") as peer:
        etag = etag_in(await peer.text("edit_file", path="a", edits=edits("a", "b"), dryRun=True))
        assert (tmp_path / "a").read_text() == "a"
        assert "+b" in await peer.text("edit_file", path="a", edits=edits("a", "b"), if_match=etag)
    assert (tmp_path / "a").read_text() == "b"


async def test_an_edit_with_a_truncated_diff_is_made(tmp_path: Path) -> None:
    async with served(tmp_path, "2025-11-25", "--max-result", "20000", "--allow-write") as peer:
        for old in ("a", "\x01"):  # takes six times as many bytes as JSON
            (tmp_path / "a").write_text(f"{old}\n" * 5_000)
            text = await peer.text("edit_file", path="a", edits=edits(old, "b", count=0))
            assert len(json.dumps(text)) < 20_000
            assert text.endswith("characters of the diff shown]")
            assert (tmp_path / "a").read_text() == "b\n" * 5_000


@pytest.mark.parametrize("option", ["", "--replace-protected", "--replace-protected --no-confirm"])
async def test_protected_files_are_replaced_only_with_replace_protected(tmp_path: Path, option: str) -> None:
    (tmp_path / "a").write_text("old")
    async with confirming(tmp_path, *option.split(), actions="accept " * 4) as peer:
        await peer.text("write_file", path="a", content="a")
        (tmp_path / "a").chmod(0o444)
        changed = edits("a", "b")
        # An edit that would be refused is refused in a dry run, and before the user is asked.
        for tool, arguments in (
            ("edit_file", {"path": "a", "edits": changed, "dryRun": True}),
            ("edit_file", {"path": "a", "edits": changed}),
            ("write_file", {"path": "a", "content": "c"}),
            ("undo", {}),
        ):
            assert ("is write-protected" in await peer.text(tool, **arguments)) == (not option), tool
    assert (tmp_path / "a").read_text() == ("b" if option else "a")


async def test_a_patch_changes_all_files_or_none_and_is_undone_as_a_whole(tmp_path: Path) -> None:
    files = [tmp_path / "a", tmp_path / "b"]
    for file in files:
        file.write_text("one\ntwo\n")
    patch = "".join(f"--- a/{file.name}\n+++ b/{file.name}\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n" for file in files)
    async with inside(tmp_path, "--allow-write") as peer:
        error = await peer.error("edit_file", patch=patch.replace("b/b\n@@ -1,2 +1,2 @@\n one", "b/b\n@@ @@\n four"))
        assert error.startswith("no_match: b: ")
        assert [file.read_text() for file in files] == ["one\ntwo\n"] * 2
        await peer.text("edit_file", patch=patch)
        assert [file.read_text() for file in files] == ["one\nthree\n"] * 2
        await peer.text("undo")
        assert [file.read_text() for file in files] == ["one\ntwo\n"] * 2
        assert (await peer.error("edit_file", patch=patch, path="a")).startswith("bad_edit: a: pass either path and")


async def test_pings_are_answered_while_a_large_patch_is_read(tmp_path: Path) -> None:
    hunks = "".join(f"@@ -{line},1 +{line},1 @@\n-a\n+b\n" for line in range(1, 20_000))
    async with inside(tmp_path, "--allow-write") as peer:
        reading = await peer.client.start("edit_file", patch=f"--- a/none/x\n+++ b/none/x\n{hunks}")
        pings = 0
        while not any(answer["id"] == reading for answer in peer.client.unclaimed):
            await peer.client.request("ping")
            pings += 1
    # It would be about five if the patch were read in the event loop.
    assert pings > 20
