"""The ten starter prompts, and prompts exported as skills."""

from pathlib import Path

import pytest

from servers.prompts.cli import golden
from servers.prompts.errors import PromptError
from servers.prompts.library.libraries import STARTER
from servers.prompts.library.library import Library
from servers.prompts.library.lint import find_objections
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
    "summarize-page",
    "write-test",
]


@pytest.fixture(scope="module")
def starter() -> Library:
    found = Library(STARTER)
    found.scan()
    return found


def exported(found: Library, name: str, folder: Path) -> Library:
    """Returns a library with the prompt exported as a skill."""
    return library(folder, {f"{name}/{path}": data for path, data in found.export(name).items()})


def test_the_starter_prompts_have_no_problems(starter: Library) -> None:
    assert starter.names == NAMES
    assert starter.check() == []
    assert [one for one in NAMES if find_objections(one)] == []


def test_each_starter_prompt_renders_its_golden_example(starter: Library) -> None:
    for name in NAMES:
        prompt, example = starter.prompt(name), golden.read_golden(starter, name)
        assert example is not None
        assert golden.make_golden(starter, name, example.arguments) == example
        needed = {one.name: example.arguments[one.name] for one in prompt.arguments if one.required}
        assert 1 <= len(needed) <= 2, name
        (*_, last) = golden.make_golden(starter, name, needed).messages
        assert all(given in last["text"] for given in needed.values())
        assert "\n\n\n" not in last["text"]
        assert len(starter.read(f"{name}.md", 10_000)) < 2_600, name


def test_each_starter_prompt_becomes_a_skill_in_plain_text(starter: Library, tmp_path: Path) -> None:
    for name in NAMES:
        back, prompt = exported(starter, name, tmp_path / name), starter.prompt(name)
        (skill,) = texts(back, name)
        assert [mark for mark in ("{{", "{%", "{#") if mark in skill] == []
        for one in prompt.arguments:
            assert f"- {f'[{one.name}]' if one.required else one.name}: {one.description or '?'}" in skill
        text = skill.partition("\n\n---\n\n")[2]
        assert [one.name for one in prompt.arguments if one.required and f"[{one.name}]" not in text] == []
        assert (back.check(), back.prompt(name).description) == ([], prompt.description)
        assert back.export(name) == starter.export(name)


def test_a_skill_includes_the_files_of_messages(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "talk.md": front("messages:", "  - image: pictures/a b.png", body="{% include 'parts/_a.txt' %}"),
        "parts/_a.txt": "A, {% include 'parts/_b.txt' %}",
        "parts/_b.txt": "B",
        "pictures/a b.png": b"\x89PNG",
    }
    found = library(tmp_path / "lib", files)
    assert set(found.export("talk")) == {"SKILL.md", "pictures/a b.png"}
    (text,) = texts(exported(found, "talk", tmp_path / "skills"), "talk")
    assert text == "## user\n\n[pictures/a b.png](pictures/a%20b.png)\n\n## user\n\nA, B"


IN_WORDS: list[tuple[list[str], str, str]] = [
    (["  - {name: z}"], "Größe: {{ 1 + 1 }}\n\n  indented", "Größe: 2\n\n  indented"),
    (["  - {name: a, required: true, type: list}"], "{{ a|join }}", "- [a]: Its name describes it.\n\n---\n\n[a]"),
    (["  - {name: a, required: true, type: url, title: The\\n page}"], "{{ a }}", "- [a]: The page\n"),
    (["  - {name: a, required: true, enum: [x, y]}"], "{{ a }}", "- [a]: Its name describes it. One of: x, y.\n"),
    (["  - {name: a, type: number, default: 0}"], "{{ a + 1 }}", "- a: Its name describes it. Otherwise: 0.\n"),
    (["  - {name: a, type: boolean, default: true}"], "{% if a %}b{% endif %}", "Otherwise: yes.\n\n---\n\nb"),
    (["  - {name: a, type: boolean}"], "{% if a %}b{% else %}c{% endif %}", "describes it.\n\n---\n\nc"),
    (["  - {name: a, type: list, default: [x, y]}"], "{{ a|length }}", "Otherwise: x, y.\n\n---\n\n2"),
    (["  - {name: a}"], "{{ a|default('none') }}", "- a: Its name describes it.\n\n---\n\nnone"),
    (["  - {name: a}"], "Hello {{ a }}!", "- [a]: Its name describes it.\n\n---\n\nHello [a]!"),
    (["  - {name: a}"], "{% if a %}b{% elif a or not a %}c{{ a }}{% endif %}", "describes it.\n\n---\n\nc[a]"),
    (["  - {name: a, default: ''}"], "b{{ a }}", "- a: Its name describes it.\n\n---\n\nb"),
]


def test_arguments_of_every_type_are_described_in_words(tmp_path: Path) -> None:
    for number, (lines, body, expected) in enumerate(IN_WORDS):
        head = front("arguments:", *lines, body=body).replace("\\n", "\n")
        found = library(tmp_path / str(number), {"one.md": head})
        assert found.check() == []
        assert expected in texts(exported(found, "one", tmp_path / f"skills {number}"), "one")[0] + "\n"


def test_a_template_that_computes_with_an_argument_is_not_exported(tmp_path: Path) -> None:
    lines = ("arguments:", "  - {name: a, type: number, required: true}")
    found = library(tmp_path, {"one.md": front(*lines, body="{{ a + 1 }}")})
    with pytest.raises(PromptError, match="it can't be written as plain text without values for its arguments"):
        found.export("one")


COMMANDS = [
    "Fix $ARGUMENTS now",
    "---\ndescription: d\nargument-hint: <pr> [priority]\n---\nPR $1, $2, $ARGUMENTS",
    "---\nallowed-tools: Bash(git add:*), Read\n---\nPlain",
    "---\nargument-hint: [what]\n---\nNothing here takes it",
    "Only $1 and $2",
    "From $0, $1",
    "Plain text with {{ braces }}",
]


def test_a_command_survives_conversion_to_a_skill_and_back(tmp_path: Path) -> None:
    for number, text in enumerate(COMMANDS):
        found = library(tmp_path / f"lib {number}", {".claude/commands/one.md": text})
        back = exported(found, "one", tmp_path / f"skills {number}")
        prompt, again = found.prompt("one"), back.prompt("one")
        assert back.check() == []
        arguments = [[(one.name, one.required) for one in of.arguments] for of in (prompt, again)]
        assert (arguments[0], prompt.allowed_tools) == (arguments[1], again.allowed_tools)
        given = {one.name: f"<{one.name}>" for one in prompt.arguments}
        assert back.rendering("one").render(given) == found.rendering("one").render(given)


def test_a_prompt_name_invalid_for_skills_is_not_exported(tmp_path: Path) -> None:
    names = ("Upper", "two words", "a--b", "-a", "x" * 65, "a_b")
    found = library(tmp_path, {f"{number}.md": front(f"name: '{name}'") for number, name in enumerate(names)})
    for name in names:
        with pytest.raises(PromptError, match="a skill can't be called"):
            found.export(name)


def test_an_invalid_golden_example_is_refused(tmp_path: Path) -> None:
    found = library(tmp_path, {"one.md": asking("{{ a }}", "a")})
    assert golden.read_golden(found, "one") is None
    for text in ("arguments: {}", "arguments: {a: 1}\nmessages: []", "arguments: {}\nmessages: [a]", "[]"):
        write(tmp_path, {"one.golden.yaml": text})
        with pytest.raises(PromptError):
            golden.read_golden(found, "one")
