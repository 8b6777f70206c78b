"""Findings of lint."""

from pathlib import Path

from servers.prompts.library.lint import estimate_tokens, lint
from tests.servers.prompts.folders import OURS, SIMPLE, front, library


def findings(folder: Path, files: dict[str, str]) -> list[str]:
    return [str(one) for one in lint(library(folder, files))]


CHANGED = {
    "two words": "turn it into a command",
    "a:b": "turn it into a command",
    "prüfen": "turn it into a command",
    "Review": "the name of a skill may have only a-z 0-9",
    "a_b": "the name of a skill may have only a-z 0-9",
    "a--b": "the name of a skill may have only a-z 0-9",
    "x" * 65: "more than 64 characters",
    "con": "Windows",
}


def test_lint_reports_names_that_clients_or_systems_change(tmp_path: Path) -> None:
    found = findings(tmp_path, {f"{number}.md": front(f"name: '{name}'") for number, name in enumerate(CHANGED)})
    for number, (name, part) in enumerate(CHANGED.items()):
        assert any(one.startswith(f"{number}.md:3: the name {name!r}") and part in one for one in found), name


def test_lint_reports_names_that_clients_confuse(tmp_path: Path) -> None:
    found = findings(tmp_path, {"a.md": front("name: Fix"), "b.md": front("name: fix")})
    assert "b.md: clients that replace characters or ignore case confuse 'fix' with 'Fix'" in found


def test_lint_reports_skills_that_hosts_do_not_find(tmp_path: Path) -> None:
    files = {
        "pdf/SKILL.md": "---\nname: doc\ndescription: x\n---\nRead.",
        "skill/skill.md": "---\nname: skill\ndescription: d\n---\nText.",
        "x/SKILL.md": "---\ndescription: d\n---\nText.",
    }
    assert findings(tmp_path, files) == [
        "pdf/SKILL.md:2: the name 'doc' is not that of the skill's directory, 'pdf'",
        "skill/skill.md: some hosts find a skill only if its file is called SKILL.md",
        "x/SKILL.md:2: there is no name, which a skill needs",
    ]


def test_lint_reports_unused_and_undeclared_arguments_with_lines(tmp_path: Path) -> None:
    files = {
        "a.md": front("arguments:", "  - description: One.", "    name: one", body="\nSay\n{{ two }}."),
        "b.md": front("arguments:", "  - name: one", "    description: One.", body="{% include '_part.md' %}"),
        "c.md": front(body="{% include '_part.md' %}"),
        "_part.md": "{{ one }}",
    }
    assert findings(tmp_path, files) == [
        "a.md:5: the argument 'one' is not used",
        "a.md:9: the template uses 'two', which is not an argument",
        "c.md:4: the template uses 'one', which is not an argument",
    ]


def test_lint_reports_missing_descriptions(tmp_path: Path) -> None:
    files = {"a.md": front("arguments:", "  - name: one", body="{{ one }}"), ".claude/commands/b.md": "Say it."}
    assert findings(tmp_path, files) == [
        ".claude/commands/b.md:1: there is no description",
        "a.md:4: the argument 'one' has no description",
    ]


def test_a_finding_is_on_one_line(tmp_path: Path) -> None:
    found = findings(tmp_path, {"a\n.md": front("name: one"), "b.md": front("name: one")})
    assert found == ["b.md: it is called 'prompt-one': 'a\\n.md' has a prompt called 'one' already"]


def test_lint_reports_long_descriptions_and_prompts(tmp_path: Path) -> None:
    described = f"---\ndescription: {'x' * 1_025}\n---\nSay it."
    size = "20,032 bytes, about 5,008 tokens (an estimate: bytes / 4); 5,000 are a lot for one prompt"
    assert findings(tmp_path, {"a.md": described, "b.md": front(body="x" * 20_000)}) == [
        "a.md:2: the description has more than 1,024 characters, which a skill can't have",
        f"b.md: it is long: {size}",
    ]


def test_estimated_tokens_are_a_quarter_of_the_bytes() -> None:
    assert [estimate_tokens(size) for size in (0, 1, 4, 5)] == [0, 1, 1, 2]


BROKEN = [
    (front("colour: red", OURS), ":3: the front matter has 'colour', which is not a known key"),
    (front(OURS, body="{% no %}"), ":5: Encountered unknown tag 'no'."),
    (front(OURS, body="Say\n{{ x.y }}"), ":6: 'y' is not available"),
    (front(body="Say {{ x }}"), ":4: {{ is served as it is written"),
    (front(body="{% include 'no.md' %}"), ":4: an include: there is no file 'no.md'"),
    (front("messages:", "  - image: no.png"), ":4: there is no file 'no.png'"),
    (front(body="Say $1"), ":4: $1 is the second word: Claude Code counts from $0"),
    (front('title: a "b": c'), ":3: the front matter is not YAML: a string that contains a colon"),
    ("Say it.", ":1: there is no description"),
    ("", ":1: it has no text"),
]


def test_lint_reports_a_broken_file_with_line_and_reason(tmp_path: Path) -> None:
    found = findings(tmp_path, {f"{number}.md": text for number, (text, _) in enumerate(BROKEN)})
    assert len(found) == len(BROKEN)
    for number, (_, expected) in enumerate(BROKEN):
        assert any(one.startswith(f"{number}.md{expected}") for one in found), expected


def test_lint_reports_a_link(tmp_path: Path) -> None:
    (tmp_path / "b.md").symlink_to("a.md")
    assert findings(tmp_path, {"a.md": SIMPLE}) == [
        "b.md: it is a link, and links are not followed: pass its target as a separate DIR"
    ]
