"""The ten prompts that come with the server, and going to SKILL.md and back."""

from pathlib import Path

import pytest

from servers.prompts import golden
from servers.prompts.errors import PromptError
from servers.prompts.format.naming import objections
from servers.prompts.library.libraries import STARTER
from servers.prompts.library.library import Library
from tests.servers.prompts.folders import asking, front, library, texts, write

NAMES = [
    "commit-message",
    "document-api",
    "explain-error",
    "plan-change",
    "refactor",
    "release-notes",
    "review-code",
    "sql-from-question",
    "summarise-page",
    "write-test",
]
each_prompt = pytest.mark.parametrize("name", NAMES)


@pytest.fixture(scope="module")
def starter() -> Library:
    found = Library(STARTER)
    found.look()
    return found


def exported(found: Library, name: str, folder: Path) -> Library:
    """A library that has the prompt as a skill."""
    for path, data in found.export(name).items():
        write(folder / name, {path: data})
    return library(folder, {})


def test_there_are_these_and_nothing_is_wrong_with_them(starter: Library) -> None:
    assert starter.names == NAMES
    assert starter.check() == []
    assert [one for one in NAMES if objections(one)] == []


@each_prompt
def test_it_renders_its_golden_example(starter: Library, name: str) -> None:
    expected = golden.golden(starter, name)
    assert expected is not None
    assert golden.example(starter, name, expected.arguments) == expected


@each_prompt
def test_it_needs_no_more_than_is_required(starter: Library, name: str) -> None:
    prompt, example = starter.prompt(name), golden.golden(starter, name)
    assert example is not None
    needed = {one.name: example.arguments[one.name] for one in prompt.arguments if one.required}
    assert 1 <= len(needed) <= 2
    (*_, last) = golden.example(starter, name, needed).messages
    assert all(given in last["text"] for given in needed.values())
    assert "\n\n\n" not in last["text"]


@each_prompt
def test_it_is_short(starter: Library, name: str) -> None:
    assert len(starter.read(f"{name}.md", 10_000)) < 2_600


@each_prompt
def test_exported_as_a_skill_and_read_back_it_is_the_same(starter: Library, name: str, tmp_path: Path) -> None:
    back = exported(starter, name, tmp_path)
    example = golden.golden(starter, name)
    assert example is not None
    assert back.check() == []
    assert back.prompt(name)._replace(base="", messages=()) == starter.prompt(name)._replace(messages=())
    assert golden.example(back, name, example.arguments) == example
    assert back.export(name) == starter.export(name)


def test_a_skill_takes_the_files_along_that_the_prompt_names(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "talk.md": front("messages:", "  - image: pictures/a.png", body="{% include 'parts/_a.txt' %}"),
        "parts/_a.txt": "A, {% include 'parts/_b.txt' %}",
        "parts/_b.txt": "B",
        "pictures/a.png": b"\x89PNG",
    }
    found = library(tmp_path / "lib", files)
    assert set(found.export("talk")) == {"SKILL.md", "parts/_a.txt", "parts/_b.txt", "pictures/a.png"}
    back = exported(found, "talk", tmp_path / "skills")
    assert back.rendering("talk").rendered({}) == found.rendering("talk").rendered({})


@pytest.mark.parametrize(
    "text",
    [
        front("messages:", "  - {role: user, text: a}", "  - {role: assistant, text: 'b\n\n  c '}", body=""),
        front("messages:", "  - {role: user, text: a}", body=""),
        front(
            "arguments:", "  - {name: a, type: number, default: 0}", "  - {name: b, type: boolean, default: false}"
        ),
        front(
            "arguments:",
            "  - {name: a, default: '1e3'}",
            "  - {name: b, default: 'no'}",
            "  - {name: c, default: ''}",
        ),
        front("arguments:", "  - {name: a, type: list, default: []}", "  - {name: b, enum: ['1', 'true', ~x]}"),
        front("title: 'ends with space '", "tags: ['#x', 'a: b', '- c']", body="--- x\n\n---"),
        front(body="Größe: {{ 1 + 1 }}\n\n  indented"),
    ],
)
def test_whatever_a_prompt_has_survives_the_way_to_a_skill_and_back(tmp_path: Path, text: str) -> None:
    found = library(tmp_path / "lib", {"one.md": text})
    back = exported(found, "one", tmp_path / "skills")
    assert back.check() == found.check() == []
    assert back.prompt("one").arguments == found.prompt("one").arguments
    assert (back.prompt("one").title, back.prompt("one").tags) == (
        found.prompt("one").title,
        found.prompt("one").tags,
    )
    assert texts(back, "one") == texts(found, "one")


@pytest.mark.parametrize(
    "text",
    [
        "Fix $ARGUMENTS now",
        "---\ndescription: d\nargument-hint: <pr> [priority]\n---\nPR $1, $2, $ARGUMENTS",
        "---\nallowed-tools: Bash(git add:*), Read\n---\nPlain",
        "---\nargument-hint: [what]\n---\nNothing here takes it",
        "Only $1 and $2",
        "From $0, $1",
        "Plain text with {{ braces }}",
    ],
)
def test_a_command_survives_the_way_to_a_skill_and_back(tmp_path: Path, text: str) -> None:
    found = library(tmp_path / "lib", {".claude/commands/one.md": text})
    back = exported(found, "one", tmp_path / "skills")
    prompt = found.prompt("one")
    assert back.check() == []
    assert back.prompt("one").arguments == prompt.arguments
    assert back.prompt("one").allowed_tools == prompt.allowed_tools
    given = {one.name: f"<{one.name}>" for one in prompt.arguments}
    assert back.rendering("one").rendered(given) == found.rendering("one").rendered(given)


@pytest.mark.parametrize("name", ["Upper", "two words", "a--b", "-a", "x" * 65, "a_b"])
def test_a_prompt_whose_name_a_skill_can_not_have_is_not_exported(tmp_path: Path, name: str) -> None:
    found = library(tmp_path, {"one.md": front(f"name: '{name}'")})
    with pytest.raises(PromptError, match="a skill can't be called"):
        found.export(name)


def test_a_golden_example_that_is_wrong_is_refused(tmp_path: Path) -> None:
    found = library(tmp_path, {"one.md": asking("{{ a }}", "a")})
    assert golden.golden(found, "one") is None
    for text in ("arguments: {}", "arguments: {a: 1}\nmessages: []", "arguments: {}\nmessages: [a]", "[]"):
        write(tmp_path, {"one.golden.yaml": text})
        with pytest.raises(PromptError):
            golden.golden(found, "one")
