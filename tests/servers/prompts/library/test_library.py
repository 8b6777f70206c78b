"""Folders as libraries: files that are prompts, their names, and changes."""

import os
from pathlib import Path
from typing import Any

import pytest

from servers.prompts.errors import PromptError
from servers.prompts.format.definitions import Prompt
from servers.prompts.library import library as module
from servers.prompts.library.folder import Folder
from servers.prompts.library.libraries import Libraries
from servers.prompts.library.library import Cache, Library
from servers.prompts.library.snapshot import ScanChanges
from tests.privileges import modes_enforced
from tests.servers.prompts.folders import SIMPLE, front, library, texts, write

SKILL = "---\nname: pdf\ndescription: Handles PDF.\nlicense: MIT\n---\n# PDF\n\nRun ${{ x }} with $1, then {{ y }}."


def test_prompts_are_named_by_path_or_front_matter(tmp_path: Path) -> None:
    files = {
        "a.md": SIMPLE,
        "git/b.md": SIMPLE,
        "git/hooks/c.md": front("name: named"),
        "README.md": "no prompt",
        "git/README.md": "no prompt",
        "_part.md": "no prompt",
        "_parts/x.md": "no prompt",
        ".git/x.md": "no prompt",
        "notes.txt": "no prompt",
        ".claude/CLAUDE.md": "no prompt",
        ".claude/agents/x.md": SIMPLE,
        ".claude/commands/fix.md": "Fix it.",
        ".claude/commands/web/fix.md": "Fix the web.",
        ".claude/skills/pdf/SKILL.md": SKILL,
        ".claude/skills/pdf/forms.md": "no prompt",
        ".claude/skills/pdf/more/README.md": "no prompt",
        "skills/doc/SKILL.md": SKILL.replace("pdf", "doc"),
        "skills/doc/refs/x.md": "no prompt",
    }
    found = library(tmp_path, files)
    assert found.check() == []
    assert found.names == ["a", "agents-x", "doc", "fix", "git-b", "named", "pdf", "web-fix"]
    assert found.path("web-fix") == ".claude/commands/web/fix.md"


def test_a_commands_folder_or_a_skill_folder_is_a_library(tmp_path: Path) -> None:
    assert library(tmp_path / ".claude", {"commands/web/fix.md": "Fix $1."}).names == ["web-fix"]
    commands = Libraries([tmp_path / ".claude/commands"])
    commands.scan()
    assert commands.names == ["web-fix"]
    assert library(tmp_path / "pdf", {"SKILL.md": SKILL}).prompt("pdf").base == ""


def test_a_skill_without_arguments_is_served_unchanged(tmp_path: Path) -> None:
    asks = SKILL.replace("license: MIT", "argument-hint: <file>").replace("name: pdf", "name: asks")
    found = library(tmp_path, {"pdf/SKILL.md": SKILL, "asks/SKILL.md": asks})
    assert found.prompt("pdf").arguments == ()
    assert texts(found, "pdf") == ["# PDF\n\nRun ${{ x }} with $1, then {{ y }}."]
    assert [(one.name, one.required) for one in found.prompt("asks").arguments] == [("arguments", True)]
    assert "with a.pdf, then {{ y }}" in texts(found, "asks", arguments="one.pdf a.pdf")[0]


HINTS = [
    ("<pr> [priority]", "$0 $1", [("pr", True), ("priority", False)]),
    ("[priority] <pr>", "$ARGUMENTS[0] $1", [("pr", True), ("priority", False)]),
    ("'[file name]'", "$0", [("file_name", False)]),
    ("[a, b]", "$0 $1", [("arg0", False), ("arg1", False)]),
    ("[pr] [priority]  ", "$0 $1", [("pr", False), ("priority", False)]),
    ("<pr> [priority]", "$1 $2", [("arguments", False)]),
    ("[pr] [priority]", "$0 $1 of $ARGUMENTS", [("arguments", False)]),
    ("<message>", "$ARGUMENTS", [("arguments", True)]),
    ("<optional: platform>", "$ARGUMENTS", [("arguments", False)]),
    ("[message]", "Nothing", [("arguments", False)]),
]


def test_argument_names_come_from_the_hint_of_a_command(tmp_path: Path) -> None:
    files = {
        f".claude/commands/{number}.md": f"---\nargument-hint: {hint}\nmodel: x\n---\n{body}"
        for number, (hint, body, _) in enumerate(HINTS)
    }
    found = library(tmp_path, files)
    arguments = [found.prompt(str(number)).arguments for number in range(len(HINTS))]
    assert [[(one.name, one.required) for one in named] for named in arguments] == [
        expected for *_, expected in HINTS
    ]


def test_the_first_line_of_a_command_is_its_description(tmp_path: Path) -> None:
    texts_of = {"one": "# Fix it\n\nNow.", "two": "---\n# nothing\n---\nFix it."}
    found = library(tmp_path, {f".claude/commands/{name}.md": text for name, text in texts_of.items()})
    assert [found.prompt(name).description for name in ("one", "two")] == ["Fix it", "Fix it."]
    assert texts(found, "two") == ["Fix it."]


# Changes


def test_a_scan_returns_new_changed_and_removed_prompts(tmp_path: Path) -> None:
    found = library(tmp_path, {"a.md": SIMPLE, "b.md": SIMPLE, "c.md": SIMPLE})
    assert found.scan() is None
    write(tmp_path, {"b.md": front(body="New."), "d.md": SIMPLE})
    (tmp_path / "c.md").unlink()
    assert found.scan() == ScanChanges(frozenset("bcd"), other_files_changed=False)
    assert found.names == ["a", "b", "d"]
    assert texts(found, "b") == ["New."]


def test_a_prompt_rendered_during_a_scan_is_not_kept_for_the_new_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = library(tmp_path, {"a.md": SIMPLE})
    take = Library._file

    def take_and_scan(self: Library, name: str) -> Any:
        monkeypatch.undo()
        file = take(self, name)
        write(tmp_path, {"a.md": front(body="New.")})
        found.scan()
        return file

    monkeypatch.setattr(Library, "_file", take_and_scan)
    found.rendering("a")
    assert texts(found, "a") == ["New."]


def test_files_beside_a_removed_skill_become_prompts(tmp_path: Path) -> None:
    files = ("one/SKILL.md", "one/a.md", "two/a.md", "two/SKILL.md/b.md")
    found = library(tmp_path, dict.fromkeys(files, SIMPLE))
    assert found.names == ["one", "two-SKILL.md-b", "two-a"]
    (tmp_path / "one/SKILL.md").unlink()
    write(tmp_path, {"two/b/SKILL.md": SIMPLE})
    assert found.scan() == ScanChanges(frozenset({"one", "one-a", "b"}), other_files_changed=False)


def test_a_broken_file_keeps_its_last_valid_prompt(tmp_path: Path) -> None:
    found = library(tmp_path, {"a.md": front(body="Good.")})
    write(tmp_path, {"a.md": "---\ndescription: [\n"})
    assert found.scan() == ScanChanges(frozenset(), other_files_changed=False)
    assert texts(found, "a") == ["Good."]
    assert [str(one) for one in found.problems()] == ["a.md:1: its front matter has no closing --- line"]
    assert found.scan() is None
    write(tmp_path, {"a.md": "x" * 300_000})
    found.scan()
    assert texts(found, "a") == ["Good."]
    assert [one.reason for one in found.problems()] == ["it has more than 256,000 bytes"]
    write(tmp_path, {"a.md": front(body="Better.")})
    assert found.scan() == ScanChanges(frozenset("a"), other_files_changed=False)
    assert texts(found, "a") == ["Better."]
    assert found.problems() == []


def test_the_second_file_of_a_name_is_renamed_until_the_name_is_free(tmp_path: Path) -> None:
    named = front("name: same", body="From {}.")
    found = library(tmp_path, {"a.md": named.format("a"), "b.md": named.format("b")})
    assert texts(found, "same") == ["From a."]
    assert texts(found, "prompt-same") == ["From b."]
    reason = "b.md: it is called 'prompt-same': 'a.md' has a prompt called 'same' already"
    assert [str(one) for one in found.problems()] == [reason]
    (tmp_path / "a.md").unlink()
    assert found.scan() == ScanChanges(frozenset({"prompt-same", "same"}), other_files_changed=False)
    assert texts(found, "same") == ["From b."]
    assert found.problems() == []


def test_folder_names_make_a_duplicate_name_unique(tmp_path: Path) -> None:
    files = {
        "plugins/chat/skills/access/SKILL.md": SKILL.replace("name: pdf", "name: access"),
        "plugins/mail/skills/access/SKILL.md": SKILL.replace("name: pdf", "name: access"),
        "a/.claude/commands/test.md": "In a.",
        "b/.claude/commands/test.md": "In b.",
        "b-test.md": "By itself.",
        "old/web/commands/fix.md": "Old.",
        "new/web/commands/fix.md": "New.",
    }
    found = library(tmp_path, files)
    assert found.names == ["access", "b-test", "commands-test", "mail-access", "old-web-fix", "test", "web-fix"]
    assert texts(found, "mail-access") == texts(found, "access")
    assert [str(one) for one in found.check()] == [
        "b/.claude/commands/test.md: it is called 'commands-test': "
        "'a/.claude/commands/test.md' has a prompt called 'test' already",
        "old/web/commands/fix.md: it is called 'old-web-fix': "
        "'new/web/commands/fix.md' has a prompt called 'web-fix' already",
        "plugins/mail/skills/access/SKILL.md: it is called 'mail-access' and is not a skill: "
        "'plugins/chat/skills/access/SKILL.md' has a prompt called 'access' already",
    ]
    (tmp_path / "b-test.md").unlink()
    found.scan()
    assert texts(found, "b-test") == ["In b."]
    (tmp_path / "a/.claude/commands/test.md").unlink()
    assert found.scan() == ScanChanges(frozenset({"b-test", "test"}), other_files_changed=False)
    assert texts(found, "test") == ["In b."]


def test_a_skill_takes_its_name_before_a_command(tmp_path: Path) -> None:
    skill = SKILL.replace("name: pdf", "name: fix")
    files = {
        ".claude/commands/fix.md": "Of the project.",
        "fix.md": "By itself.",
        "commands/fix.md": "Of the plugin.",
        "commands/fix.toml": 'prompt = "Of the extension."',
        "fix/SKILL.md": skill,
        "skills/fix/SKILL.md": skill,
        "skills/skills/fix/SKILL.md": skill,
    }
    found = library(tmp_path, files)
    named = {name: found.path(name) for name in found.names}
    assert named == {
        "claude-commands-fix": ".claude/commands/fix.md",
        "commands-fix": "commands/fix.md",
        "fix": "fix/SKILL.md",
        "prompt-commands-fix": "commands/fix.toml",
        "prompt-fix": "fix.md",
        "skills-fix": "skills/fix/SKILL.md",
        "skills-skills-fix": "skills/skills/fix/SKILL.md",
    }
    assert texts(found, "commands-fix") == ["Of the plugin."]
    assert len(found.problems()) == 6


def test_a_renamed_file_with_a_fault_has_one_problem(tmp_path: Path) -> None:
    text = "---\ndescription: a: b\n---\nSay it."
    found = library(tmp_path, dict.fromkeys(("a/commands/x.md", "b/a/commands/x.md", "c/b/a/commands/x.md"), text))
    assert found.names == ["a-x", "b-a-x", "c-b-a-x"]
    problems = found.check()
    assert [problem.line for problem in problems] == [2, 2, 2]
    assert "; it is called 'b-a-x': " in problems[1].reason


def test_a_long_name_drops_its_first_folders(tmp_path: Path) -> None:
    found = library(tmp_path, {f"{'a' * 60}/{'b' * 60}/{'c' * 60}.md": "Say it."})
    assert found.names == [f"{'b' * 60}-{'c' * 60}"]
    assert [one.reason[:15] for one in found.problems()] == ["it is called 'b"]


def test_the_text_of_a_skill_is_its_default_description(tmp_path: Path) -> None:
    found = library(tmp_path, {"one/SKILL.md": "# Do it\n\nNow.", "two/SKILL.md": "---\nname: two\n---\nGo."})
    reason = "it has no description, which a skill needs in most hosts"
    assert [str(one) for one in found.check()] == [f"one/SKILL.md:1: {reason}", f"two/SKILL.md:2: {reason}"]
    assert [found.prompt(name).description for name in found.names] == ["Do it", "Go."]


def test_a_scan_detects_a_changed_include(tmp_path: Path) -> None:
    found = library(tmp_path, {"a.md": front(body="{% include '_b.md' %}"), "_b.md": "old"})
    assert texts(found, "a") == ["old"]
    write(tmp_path, {"_b.md": "newer"})
    assert found.scan() == ScanChanges(frozenset(), other_files_changed=True)
    assert texts(found, "a") == ["newer"]


def test_a_missing_folder_keeps_its_prompts(tmp_path: Path) -> None:
    found = library(tmp_path / "lib", {"a.md": SIMPLE})
    (tmp_path / "lib").rename(tmp_path / "away")
    assert found.scan() == ScanChanges(frozenset(), other_files_changed=False)
    assert [str(one) for one in found.problems()] == ["the folder can't be read"]
    assert texts(found, "a") == ["Say it."]
    (tmp_path / "away").rename(tmp_path / "lib")
    found.scan()
    assert found.problems() == []


def test_an_unreadable_file_is_reported(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": SIMPLE})
    (tmp_path / "a.md").chmod(0)
    with modes_enforced():
        problems = library(tmp_path, {"b.md": SIMPLE}).problems()
    assert [str(problem) for problem in problems] == ["a.md: it can't be read"]


def test_reading_stops_at_the_size_limit_of_a_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("servers.prompts.library.folder.MAX_TOTAL_BYTES", 3 * len(SIMPLE))
    write(tmp_path, {f"{number}.md": SIMPLE for number in range(9)})
    found = Folder(tmp_path).walk(frozenset(), {})
    assert [one.path for one in found if one.data] == ["0.md", "1.md", "2.md", "3.md"]


def test_a_file_beyond_the_size_limit_of_a_library_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("folder", "snapshot"):
        monkeypatch.setattr(f"servers.prompts.library.{name}.MAX_TOTAL_BYTES", 400_000)
    found = library(tmp_path, dict.fromkeys(("CHANGELOG.md", "README.md"), 250_000 * "x") | {"a.md": SIMPLE})
    assert found.names == []
    assert [problem.path for problem in found.problems()] == ["a.md"]
    assert "the files of the library have more than" in found.problems()[0].reason


def test_names_unusable_for_clients_are_reported(tmp_path: Path) -> None:
    for name in (b"\xff.md", b"\xfe/a.md", b"two\nlines.md", b" space.md", b"n" * 129 + b".md"):
        (tmp_path / os.fsdecode(name)).parent.mkdir(exist_ok=True)
        (tmp_path / os.fsdecode(name)).write_text(SIMPLE)
    found = library(tmp_path, {"named\n.md": front("name: named")})
    assert found.names == ["named"]
    reason = "its name is not valid for a prompt: it must have 1 to 128 characters, and no control characters"
    assert [str(one) for one in found.problems()] == [
        f" space.md: {reason}",
        f"{'n' * 129}.md: {reason}",
        f"two\\nlines.md: {reason}",
        "\\udcfe/a.md: its path is not UTF-8",
        "\\udcff.md: its path is not UTF-8",
    ]
    found.scan()
    assert found.names == ["named"]


# Several libraries


def test_pages_continue_after_a_name_without_broken_prompts(tmp_path: Path) -> None:
    write(tmp_path, {"a/one.md": SIMPLE, "a/three.md": "", "b/two.md": SIMPLE, "b/four.md": SIMPLE})
    found = Libraries([tmp_path / "a", tmp_path / "b"])
    found.scan()
    assert found.names == ["four", "one", "three", "two"]
    assert [one.name for one in found.page("", 2)] == ["four", "one"]
    assert [one.name for one in found.page("one", 2)] == ["two"]
    assert found.page("two", 2) == []
    assert [str(one.problem) for one in found.problems()] == ["three.md:1: it has no text"]


def test_a_name_in_two_libraries_refers_to_the_first(tmp_path: Path) -> None:
    write(tmp_path, {"a/one.md": front(body="First."), "b/one.md": front(body="Second.")})
    found = Libraries([tmp_path / "a", tmp_path / "b", tmp_path / "a"])
    assert len(found.all) == 2
    found.scan()
    assert texts(found.library("one"), "one") == ["First."]
    assert found.problems() == []
    (tmp_path / "a/one.md").unlink()
    assert found.scan() == ScanChanges(frozenset({"one"}), other_files_changed=False)
    assert texts(found.library("one"), "one") == ["Second."]


def test_a_cache_keeps_recently_used_entries_up_to_its_weight() -> None:
    cache: Cache[str] = Cache(10)
    cache.put("a", "A", 4)
    cache.put("b", "B", 4)
    assert cache.get("a") == "A"
    cache.put("c", "C", 4)
    assert [cache.get(key) for key in "abc"] == ["A", None, "C"]
    cache.put("a", "AA", 6)
    cache.put("d", "D", 11)
    assert [cache.get(key) for key in "acd"] == [None, None, None]


def test_libraries_are_behind_after_a_change_since_the_last_scan(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": SIMPLE, "git/b.md": SIMPLE})
    found = Libraries([tmp_path])
    assert found.is_behind()
    for path, change in (
        ("git", lambda: write(tmp_path, {"git/c.md": SIMPLE})),
        ("", (tmp_path / "a.md").unlink),
        ("", lambda: (tmp_path / "git").rename(tmp_path / "log")),
    ):
        os.utime(tmp_path / path, (1, 1))  # for a clock with a resolution of milliseconds
        found.scan()
        assert not found.is_behind()
        change()
        assert found.is_behind()


def test_a_file_fixed_during_a_scan_has_no_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = library(tmp_path, {"a.md": SIMPLE, "b.md": SIMPLE})
    plain = module.parse_file

    def parsed(*arguments: Any) -> Prompt:
        monkeypatch.setattr(module, "parse_file", plain)
        write(tmp_path, {"a.md": SIMPLE + "more"})
        found.scan()
        raise PromptError("bad_prompt", "half written")

    found._parsed = Cache(1_000)
    monkeypatch.setattr(module, "parse_file", parsed)
    with pytest.raises(PromptError):
        found.prompt("a")
    assert found.problems() == []
