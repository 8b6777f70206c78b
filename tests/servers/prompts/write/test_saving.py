"""Saved and deleted prompts: accepted texts, their files, and unchanged files."""

import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from servers.prompts.errors import PromptError
from servers.prompts.library.libraries import STARTER, Libraries
from servers.prompts.write.files import make_etag
from servers.prompts.write.saving import check_deleting, check_saving, delete_prompt, save_prompt
from tests import disk
from tests.servers.prompts.folders import OURS, SIMPLE, front, write

OTHER = SIMPLE.replace("Say", "Sing")
PDF = "---\nname: pdf\ndescription: x\n---\nRead."


def opened(*roots: Path) -> Libraries:
    found = Libraries(roots)
    found.scan()
    return found


def files(folder: Path) -> dict[str, str]:
    """Returns all files, with those that no library lists."""
    return {one.relative_to(folder).as_posix(): one.read_text() for one in folder.rglob("*") if one.is_file()}


@pytest.fixture
def libraries(tmp_path: Path) -> Libraries:
    write(tmp_path, {"a.md": SIMPLE, "git/b.md": SIMPLE})
    return opened(tmp_path)


def test_a_new_prompt_is_written_and_served(tmp_path: Path, libraries: Libraries) -> None:
    mask = os.umask(0)
    saved = save_prompt(libraries, "new", OTHER)
    os.umask(mask)
    assert (tmp_path / "new.md").stat().st_mode & 0o777 == 0o666
    assert saved == ("new.md", make_etag(OTHER.encode()), True)
    libraries.scan()
    assert libraries.library("new").source("new") == OTHER.encode()
    assert sorted(files(tmp_path)) == ["a.md", "git/b.md", "new.md"]


def test_a_prompt_is_replaced_in_place_and_deleted_with_its_etag(tmp_path: Path, libraries: Libraries) -> None:
    (tmp_path / "git/b.md").chmod(0o640)
    assert not save_prompt(libraries, "git-b", OTHER, if_match=make_etag(SIMPLE.encode())).created
    assert files(tmp_path) == {"a.md": SIMPLE, "git/b.md": OTHER}
    assert (tmp_path / "git/b.md").stat().st_mode & 0o777 == 0o640
    libraries.scan()
    assert delete_prompt(libraries, "git-b", if_match=make_etag(OTHER.encode())) == "git/b.md"
    assert files(tmp_path) == {"a.md": SIMPLE}


@pytest.mark.parametrize("mode", [0o600, 0o640])
def test_a_replacement_is_private_until_it_has_the_old_permissions(
    tmp_path: Path, libraries: Libraries, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    (tmp_path / "a.md").chmod(mode)
    made = disk.made(monkeypatch)
    save_prompt(libraries, "a", OTHER, if_match=make_etag(SIMPLE.encode()))
    assert (made, (tmp_path / "a.md").stat().st_mode & 0o777) == ([0o600], mode)


def test_a_change_is_synced_before_the_answer(libraries: Libraries, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = disk.synced(monkeypatch)
    for act, expected in (
        (lambda: save_prompt(libraries, "new", OTHER), [len(OTHER), ["a.md", "git", "new.md"]]),
        (lambda: delete_prompt(libraries, "a", if_match=make_etag(SIMPLE.encode())), [["git", "new.md"]]),
        (
            lambda: save_prompt(libraries, "new", OTHER, draft=True),
            [["_drafts", "git", "new.md"], len(OTHER), ["new.md"]],
        ),
        (lambda: save_prompt(libraries, "newer", OTHER, draft=True), [len(OTHER), ["new.md", "newer.md"]]),
    ):
        act()
        assert synced == expected
        synced.clear()


def refusal(call: Callable[..., object], *arguments: object, **more: object) -> str:
    with pytest.raises(PromptError) as caught:
        call(*arguments, **more)
    return f"{caught.value.code}: {caught.value}"


def refusal_of_both(
    libraries: Libraries,
    call: Callable[..., object],
    check: Callable[..., object],
    *arguments: object,
    **more: object,
) -> str:
    """Returns the error of a call, after a check that its validation before the consent raises the same."""
    refused = refusal(call, libraries, *arguments, **more)
    assert refusal(check, libraries, *arguments, **more) == refused
    return refused


def test_refusals_explain_reason_and_next_step(tmp_path: Path, libraries: Libraries) -> None:
    etag = make_etag(SIMPLE.encode())
    assert re.fullmatch("[0-9a-f]{16}", etag)
    write(tmp_path, {"pdf/SKILL.md": PDF})
    libraries.scan()
    (tmp_path / "link.md").symlink_to("nothing")
    (tmp_path / "git/b.md").chmod(0o400)
    save, remove = (
        partial(refusal_of_both, libraries, *both)
        for both in ((save_prompt, check_saving), (delete_prompt, check_deleting))
    )
    known = f"'a.md' already exists. To replace it, pass its etag as if_match: {etag}"
    assert save("a", OTHER) == f"already_exists: {known}"
    assert save("a", OTHER, if_match="0") == f"changed: 'a.md' has changed in the meantime; its etag is now {etag}"
    assert save("new", OTHER, if_match="0") == "changed: 'new.md' no longer exists"
    assert save("link", OTHER) == "not_written: 'link.md' is not a file, but a link or something else"
    assert save("git-b", OTHER, if_match=etag) == "not_written: 'b.md' is write-protected"
    assert save("x/y", OTHER) == "bad_prompt: 'x/y' is not a valid name for a new prompt. Use a-z 0-9 and -."
    unknown = "the template uses 'x', which is not an argument"
    assert unknown in save("new", front(OURS, body="{{ x }}"))
    named = "the front matter says 'other', but the prompt is being saved as 'new'"
    assert save("new", front("name: other")) == f"bad_prompt: {named}"
    skill = "is a skill, whose directory may have other files besides SKILL.md"
    assert remove("pdf") == f"not_written: 'pdf' {skill}"
    (tmp_path / "_drafts").mkdir()
    assert remove("a", draft=True) == "not_found: there is no '_drafts/a.md'"
    assert remove("../a", draft=True) == "not_written: '_drafts/../a.md' has an empty name, . or .. in it"
    assert remove("no") == "not_found: there is no prompt 'no'"
    assert remove("a", if_match="0" * 16).startswith("changed: 'a.md' has changed in the meantime")
    (tmp_path / "_drafts").rmdir()
    (tmp_path / "link.md").unlink()
    assert files(tmp_path) == {"a.md": SIMPLE, "git/b.md": SIMPLE, "pdf/SKILL.md": PDF}


def test_a_file_changed_since_the_last_scan_is_not_replaced(tmp_path: Path, libraries: Libraries) -> None:
    theirs = SIMPLE.replace("Say", "Cry")
    write(tmp_path, {"a.md": theirs, "new.md": SIMPLE})
    with pytest.raises(PromptError, match="has changed in the meantime"):
        save_prompt(libraries, "a", OTHER, if_match=make_etag(SIMPLE.encode()))
    with pytest.raises(PromptError, match="already"):
        save_prompt(libraries, "new", OTHER)
    assert files(tmp_path) == {"a.md": theirs, "git/b.md": SIMPLE, "new.md": SIMPLE}


def test_a_file_created_during_the_save_is_not_replaced(
    tmp_path: Path, libraries: Libraries, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.fsync", lambda _: write(tmp_path, {"new.md": SIMPLE}))
    with pytest.raises(PromptError) as error:
        save_prompt(libraries, "new", OTHER)
    assert error.value.code == "changed"
    assert files(tmp_path) == {"a.md": SIMPLE, "git/b.md": SIMPLE, "new.md": SIMPLE}


WRONG = [
    ("Say it.", "line 1: there is no description"),
    ("", "line 1: it has no text"),
    (front(OURS, body="{{ x }}"), "line 5: the template uses 'x', which is not an argument"),
    (front(OURS, body="{% no %}"), "line 5: Encountered unknown tag"),
    (front(body="{{ x }}"), "line 4: {{ is served as it is written"),
    (front("arguments:", "  - name: x"), "'x' has no description; line 4: the argument 'x' is not used"),
    (front("name: other"), "the front matter says 'other', but the prompt is being saved as 'new'"),
    (front(body="\ud800"), "it is not UTF-8"),
    (front(body="x" * 300_000), "more than 256,000 bytes"),
]
NO_NAMES = ["", ".", "..", "../x", "x/y", "/etc/x", ".x", "_x", "README", "two words", "con", "x\0", "x" * 65, "Ü"]


@pytest.mark.parametrize("draft", [False, True])
def test_invalid_texts_and_names_are_not_written(tmp_path: Path, libraries: Libraries, draft: bool) -> None:
    for text, reason in WRONG:
        error = refusal(save_prompt, libraries, "new", text, draft)
        assert error.startswith("bad_prompt: ")
        assert reason in error
    for name in NO_NAMES:
        assert refusal(save_prompt, libraries, name, OTHER, draft).startswith("bad_prompt: "), name
    assert files(tmp_path) == {"a.md": SIMPLE, "git/b.md": SIMPLE}


def test_a_draft_is_not_served_and_needs_its_etag_to_change(tmp_path: Path, libraries: Libraries) -> None:
    first = save_prompt(libraries, "a", OTHER, draft=True)
    assert first.path == "_drafts/a.md"
    assert libraries.scan() is not None
    assert libraries.names == ["a", "git-b"]
    assert files(tmp_path) == {"a.md": SIMPLE, "git/b.md": SIMPLE, "_drafts/a.md": OTHER}
    with pytest.raises(PromptError, match="already"):
        save_prompt(libraries, "a", SIMPLE, draft=True)
    second = save_prompt(libraries, "a", SIMPLE, draft=True, if_match=first.etag)
    assert delete_prompt(libraries, "a", draft=True, if_match=second.etag) == "_drafts/a.md"
    assert files(tmp_path) == {"a.md": SIMPLE, "git/b.md": SIMPLE}


@pytest.mark.parametrize("link", ["new.md", "_drafts"])
def test_nothing_is_written_through_a_link(tmp_path: Path, link: str) -> None:
    write(tmp_path, {"library/a.md": SIMPLE, "elsewhere/new.md": SIMPLE})
    target = "elsewhere" if link == "_drafts" else "elsewhere/new.md"
    (tmp_path / "library" / link).symlink_to(tmp_path / target)
    with pytest.raises(PromptError) as error:
        save_prompt(opened(tmp_path / "library"), "new", OTHER, draft=link == "_drafts")
    assert error.value.code == "not_written"
    assert str(tmp_path) not in str(error.value)
    assert files(tmp_path / "elsewhere") == {"new.md": SIMPLE}


def test_a_failed_write_changes_nothing(
    tmp_path: Path, libraries: Libraries, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "no space")

    monkeypatch.setattr("os.write", full)
    with pytest.raises(PromptError, match="No space left"):
        save_prompt(libraries, "a", OTHER, if_match=make_etag(SIMPLE.encode()))
    assert files(tmp_path) == {"a.md": SIMPLE, "git/b.md": SIMPLE}


def _refuse(*_: object, **__: object) -> None:
    raise PermissionError


def test_a_new_file_is_linked_to_its_name_without_replacing(
    tmp_path: Path, libraries: Libraries, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.rename", _refuse)
    assert save_prompt(libraries, "git-new", OTHER).path == "git-new.md"
    assert save_prompt(libraries, "new", OTHER, draft=True).created
    assert sorted(files(tmp_path)) == ["_drafts/new.md", "a.md", "git-new.md", "git/b.md"]


def test_a_new_file_replaces_nothing_without_hard_links(
    tmp_path: Path, libraries: Libraries, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise PermissionError(1, "no hard links")

    monkeypatch.setattr("os.link", unknown)
    assert save_prompt(libraries, "new", OTHER).created
    monkeypatch.setattr("os.fsync", lambda _: write(tmp_path, {"late.md": SIMPLE}))
    with pytest.raises(PromptError) as error:
        save_prompt(libraries, "late", OTHER)
    assert error.value.code == "changed"
    assert files(tmp_path) == {"a.md": SIMPLE, "git/b.md": SIMPLE, "new.md": OTHER, "late.md": SIMPLE}


def test_a_commands_folder_has_commands_but_no_drafts(tmp_path: Path) -> None:
    folder = tmp_path / ".claude/commands"
    write(folder, {"fix.md": "Fix it."})
    text = "---\ndescription: Looks.\n---\nLook at $0."
    reason = "drafts can't be saved in a commands folder: every file there is a command"
    assert refusal(save_prompt, opened(folder), "look", text, draft=True) == f"not_written: {reason}"
    assert files(folder) == {"fix.md": "Fix it."}
    save_prompt(opened(folder), "look", text)
    assert opened(folder).prompt("look").syntax == "claude"


def test_only_the_first_library_is_changed(tmp_path: Path) -> None:
    write(tmp_path, {"first/a.md": SIMPLE, "second/b.md": SIMPLE})
    libraries = opened(tmp_path / "first", tmp_path / "second")
    reason = "'b' is not in the first library, the only one that can be changed"
    assert refusal(delete_prompt, libraries, "b") == f"read_only: {reason}"
    save_prompt(libraries, "b", OTHER)
    assert files(tmp_path) == {"first/a.md": SIMPLE, "first/b.md": OTHER, "second/b.md": SIMPLE}


def test_the_starter_library_is_not_changed() -> None:
    libraries = opened(STARTER)
    expected = "read_only: the starter library can't be changed. Start the server with a DIR."
    assert refusal(save_prompt, libraries, "new", OTHER) == expected
    assert refusal(delete_prompt, libraries, "refactor") == expected
