"""The form of a file in a library."""

from pathlib import Path

import pytest

from servers.prompts.errors import PromptError
from servers.prompts.format.forms import Kind, find_kind, parse_file
from tests.servers.prompts.folders import front, library, texts

KINDS: list[tuple[str, tuple[str, str, str] | None]] = [
    (".claude/commands/git/fix.md", ("command", "git-fix", "claude")),
    (".claude/agents/tester.md", ("command", "agents-tester", "claude")),
    (".claude/settings.md", None),
    (".claude-plugin/commands/fix.md", ("command", "fix", "claude")),
    (".claude-plugin/agents/tester.md", ("command", "agents-tester", "claude")),
    (".agents/skills/pdf/SKILL.md", ("skill", "pdf", "claude")),
    (".github/agents/tester.agent.md", ("command", "agents-tester", "plain")),
    (".opencode/agent/tester.md", ("command", "agents-tester", "plain")),
    (".cursor/agents/tester.md", ("command", "agents-tester", "plain")),
    (".codex/prompts/fix.md", ("command", "fix", "codex")),
    (".cursor/commands/fix.md", ("command", "fix", "plain")),
    (".gemini/commands/git/fix.toml", ("command", "git-fix", "gemini")),
    (".gemini/commands/fix.md", None),
    (".github/prompts/fix.prompt.md", ("command", "fix", "vscode")),
    (".github/commands/triage.toml", ("command", "triage", "gemini")),
    (".github/commands/triage.md", None),
    (".github/ISSUE_TEMPLATE/bug.md", None),
    (".opencode/command/fix.md", ("command", "fix", "opencode")),
    (".opencode/commands/team/fix.md", ("command", "team-fix", "opencode")),
    ("commands/fix.md", ("command", "fix", "claude")),
    ("commands/fix.toml", ("command", "fix", "gemini")),
    ("plugins/web/commands/git/fix.md", ("command", "web-git-fix", "claude")),
    ("plugins/web/agents/tester.agent.md", ("command", "web-agents-tester", "claude")),
    ("team/fix.prompt.md", ("markdown", "team-fix", "vscode")),
    ("team/fix.md", ("markdown", "team-fix", "claude")),
    ("team/security.md", ("markdown", "team-security", "claude")),
    ("team/SECURITY.md", None),
    ("commands/README.md", None),
    ("commands/README.MD", None),
    (".claude/commands/FIX.MD", ("command", "FIX", "claude")),
    (".agents/skills/pdf/skill.md", ("skill", "pdf", "claude")),
    ("pyproject.toml", None),
    ("commands/_part.md", None),
]


def test_the_path_determines_the_form_of_a_file() -> None:
    for path, expected in KINDS:
        kind = find_kind(path, ("home", "lib"), frozenset())
        assert (None if kind is None else (kind.form, kind.name, kind.syntax)) == expected, path


def test_a_file_with_template_features_is_a_template() -> None:
    kind = Kind("markdown", "one", "")
    for text, syntax in [
        (front("arguments: [{name: a}]"), "jinja"),
        (front("messages: [{text: a}]"), "jinja"),
        (front(body="{% include 'a.md' %}"), "jinja"),
        (front("model: x", body="{% include 'a.md' %}"), "claude"),
        (front("arguments: [issue]", body="{{ a }}"), "claude"),
        (front(body="{% raw %} {{ a }} $ARGUMENTS"), "claude"),
        ("No front matter {{ a }}", "claude"),
    ]:
        assert parse_file(kind, text.encode()).syntax == syntax, text


def test_a_command_in_a_folder_of_its_host_is_not_a_template(tmp_path: Path) -> None:
    text = front(body="{% include 'a.md' %} {{ a }}")
    found = library(tmp_path, {".claude/commands/one.md": text, "commands/two.md": front("arguments: [{name: a}]")})
    assert texts(found, "one") == ["{% include 'a.md' %} {{ a }}"]
    assert found.prompt("two").syntax == "jinja"


DECLARED = {
    "another key": (["allowed-tools: [Read]", "arguments: [{name: site-url}]"], "Set up $ARGUMENTS.", True),
    "a name with a hyphen": (
        ["arguments: [{name: site-url, required: true}]"],
        "Set up {site-url} {{ title }}.",
        True,
    ),
    "no description": (["description: ''", "arguments: [{name: a}]"], "Say it.", True),
    "a template with another key": (["titel: x", "arguments: [{name: a}]"], "Say {{ a }}.", False),
    "a template with a hyphen": (["arguments: [{name: a-b}]"], "Say {{a-b|fence}}.", False),
    "a statement": (["titel: x", "arguments: [{name: a}]"], "{% if a %}Say it.{% endif %}", False),
    "messages": (["titel: x", "messages: [{text: a}]"], "Say it.", False),
}


def test_foreign_argument_declarations_do_not_hide_a_command(tmp_path: Path) -> None:
    files = {f"{name}.md": "\n".join(("---", *head, "---", body)) for name, (head, body, _) in DECLARED.items()}
    found = library(tmp_path, files)
    reasons = {problem.path.removesuffix(".md"): problem.reason for problem in found.check()}
    served = {name: reasons[name].endswith("; it is served as a command") for name in DECLARED}
    assert served == {name: is_command for name, (_, _, is_command) in DECLARED.items()}
    assert texts(found, "another key", arguments="a b") == ["Set up a b."]
    assert texts(found, "a name with a hyphen") == ["Set up {site-url} {{ title }}."]


FRONTS = {
    'description: Use when the user says "deploy": runs all': 'Use when the user says "deploy": runs all',
    "argument-hint: [message] | --no-verify": "Text.",
    "description: @mention": "@mention",
    "description: `code` first": "`code` first",
    "description: %percent\nmodel: x": "%percent",
    "description: a: b\n  and more": "a: b and more",
    "description: a, which\ngoes on\nmodel: x": "a, which goes on",
    "description: When it is so.\n\nContext: a: b\nUser: c\nmodel: x": "When it is so. Context: a: b User: c",
    "description: Use this for:\n  - one\n  - two": "Use this for: - one - two",
    "description: >-\n  One\n  - two\nhint: a: b": "One - two",
    "description: !important now": "!important now",
    "description: Use the team's: {all}": "Use the team's: {all}",
    "description: a\ndescription: b": "b",
    "tools:\n  - Read\n  - Bash(a: b)\ndescription: a: b": "a: b",
    "title: null\ndescription: 12": "12",
    "description: [one, two]": "one, two",
    "description: {a: b}": "Text.",
}


def test_unusual_front_matter_does_not_hide_a_command(tmp_path: Path) -> None:
    files = {f"{number}.md": f"---\n{head}\n---\nText." for number, head in enumerate(FRONTS)}
    found = library(tmp_path, files)
    assert [found.prompt(str(number)).description for number in range(len(FRONTS))] == [*FRONTS.values()]
    assert all(texts(found, name) == ["Text."] for name in found.names)
    assert found.count() == len(FRONTS)
    assert all("line by line" in one.reason for one in found.problems())


def test_a_gemini_cli_command_needs_a_prompt(tmp_path: Path) -> None:
    files = {
        "good.toml": 'description = "Fixes."\nprompt = """\nFix {{args}}.\n"""',
        "other.toml": "name = 1",
        "broken.toml": "prompt = ",
    }
    found = library(tmp_path, {f".gemini/commands/{path}": text for path, text in files.items()})
    assert found.prompt("good").description == "Fixes."
    assert texts(found, "good", arguments="it") == ["Fix it."]
    assert [(one.path.rpartition("/")[2], one.reason[:12]) for one in found.check()] == [
        ("broken.toml", "it is not TO"),
        ("other.toml", "it has no te"),
    ]


def test_a_text_without_front_matter_may_start_with_a_rule() -> None:
    kind = Kind("markdown", "one", "")
    assert parse_file(kind, b"---\nThis is a text.\n").messages[0].content == "---\nThis is a text."
    between = parse_file(kind, b"---\n\nNo key here.\n\n---\nThe rest.")
    assert between.messages[0].content == "The rest."
    assert between.notice is not None
    assert between.notice[1].endswith("; it is left out, as hosts do")
    with pytest.raises(PromptError, match="has no closing --- line"):
        parse_file(kind, b"---\ndescription: half")
