"""Conversion of prompts to commands of hosts, and back."""

from pathlib import Path

import pytest

from servers.prompts.errors import PromptError
from servers.prompts.library.library import Library
from servers.prompts.templates.host_commands import HOSTS, Command, make_command
from tests.servers.prompts.folders import write

FOLDERS = {
    "claude": ".claude/commands/a.md",
    "codex": ".codex/prompts/a.md",
    "cursor": ".cursor/commands/a.md",
    "gemini": ".gemini/commands/a.toml",
    "opencode": ".opencode/command/a.md",
    "vscode": ".github/prompts/a.prompt.md",
    "ours": "a.md",
}
TEMPLATE = """---
description: Review code.
arguments:
  - name: code
    required: true
  - name: focus
    default: everything
---
Review {{ code }}, and look for {{ focus }}.
"""


def convert(tmp_path: Path, source: str, text: str | bytes, target: str) -> Command:
    folder = tmp_path / f"{source}-{target}"
    write(folder, {FOLDERS[source]: text})
    library = Library(folder)
    library.scan()
    (name,) = library.names
    return make_command(library.rendering(name), library.source(name), HOSTS[target])


FRONT = "---\ndescription: 'Fix: it'\n---\n\n"


@pytest.mark.parametrize(
    ("source", "target", "text"),
    [
        ("claude", "codex", "---\ndescription: 'Fix: it'\nargument-hint: <a> [b]\n---\n\nFix $0 on $1.\n\n"),
        ("claude", "codex", f"{FRONT}Look at $ARGUMENTS now"),
        ("claude", "opencode", f"{FRONT}Fix $0 on $1.\n"),
        ("claude", "vscode", f"{FRONT}Look at $ARGUMENTS now.\n"),
        ("codex", "claude", "Fix $1 on $2, twice: $1.\n"),
        ("opencode", "codex", f"{FRONT}Look at $ARGUMENTS now.\n"),
        ("claude", "gemini", '---\ndescription: Say "it"\n---\n\nLook at $ARGUMENTS, \\ and """.\n'),
        ("claude", "cursor", "Say it.\n"),
    ],
)
def test_conversion_to_a_host_and_back_restores_the_file(tmp_path: Path, source: str, target: str, text: str) -> None:
    there = convert(tmp_path, source, text, target)
    back = convert(tmp_path, target, there.data, source)
    assert (there.losses, back.losses) == ((), ())
    assert back.data.decode() == text


@pytest.mark.parametrize("host", HOSTS)
def test_conversion_to_the_same_host_changes_nothing(tmp_path: Path, host: str) -> None:
    text = 'prompt = "x"\n' if host == "gemini" else "---\r\nmodel: x\r\n---\r\nSay it."
    assert convert(tmp_path, host, text, host) == Command(text.encode(), ())


def test_lost_fields_are_listed(tmp_path: Path) -> None:
    text = "---\ndescription: It\nmodel: opus\nallowed-tools: Bash\n---\nSay $ARGUMENTS.\n"
    assert convert(tmp_path, "claude", text, "codex").losses == ("model", "allowed-tools")
    assert convert(tmp_path, "claude", text, "gemini").losses == ("model", "allowed-tools")


@pytest.mark.parametrize(
    ("front", "converted"),
    [
        ("description : It\nmodel : opus\n", "description : It\n"),
        ('"model": opus\n"description": It\n', '"description": It\n'),
        ("{model: opus, description: It}\n", "description: It\n"),
        ("model: &it opus\ndescription: *it\n", "description: opus\n"),
    ],
)
def test_front_matter_in_any_yaml_style_is_converted(tmp_path: Path, front: str, converted: str) -> None:
    made = convert(tmp_path, "claude", f"---\n{front}---\nSay $ARGUMENTS.\n", "codex")
    assert made == Command(f"---\n{converted}---\nSay $ARGUMENTS.\n".encode(), ("model",))


def test_lost_shell_insertions_are_listed(tmp_path: Path) -> None:
    text = "Look at !`git diff`, at !`ls` and at $ARGUMENTS.\n"
    assert convert(tmp_path, "claude", text, "opencode").losses == ()
    assert convert(tmp_path, "claude", text, "codex").losses == ("the text that its host inserts for !`git diff`",)
    block = "Look:\n\n```!\ngit diff\n```\n"
    assert convert(tmp_path, "claude", block, "opencode").losses == ("the text that its host inserts for ```!",)
    with pytest.raises(PromptError, match="Claude Code would put the output of a program"):
        convert(tmp_path, "opencode", block, "claude")


def test_a_template_without_logic_becomes_a_command(tmp_path: Path) -> None:
    lost = ("the default of arguments", "the text for optional arguments that are left out")
    made = convert(tmp_path, "ours", TEMPLATE, "claude")
    assert made.data.decode() == (
        "---\ndescription: Review code.\narguments:\n- code\n- focus\n---\n\nReview $code, and look for $focus.\n"
    )
    assert made.losses == lost
    assert b"Review $CODE, and look for $FOCUS." in convert(tmp_path, "ours", TEMPLATE, "codex").data
    assert b"Review ${input:code}, and" in convert(tmp_path, "ours", TEMPLATE, "vscode").data
    assert b"Review $1, and look for $2." in convert(tmp_path, "ours", TEMPLATE, "opencode").data


@pytest.mark.parametrize(
    ("source", "target", "text", "reason"),
    [
        ("claude", "gemini", "Fix $0 on $1.", "take one argument, {{args}}, but it needs 'arg0', 'arg1'"),
        (
            "claude",
            "cursor",
            "Look at $ARGUMENTS.",
            "commands of Cursor take no arguments, but it needs 'arguments'. Export it",
        ),
        ("claude", "codex", r"Fix $0, for \$1.", "as a Codex command it would have a different text"),
        ("claude", "codex", "Fix $ARGUMENTS[1], $ARGUMENTS.", "as a Codex command it would have a different text"),
        ("claude", "vscode", "Fix $ARGUMENTS in ${input:x}.", "as a VS Code command it would have a different text"),
        ("codex", "claude", "Look at !`git diff`.", "Claude Code would put the output of a program, or a file, in"),
        ("codex", "gemini", "Look at @{notes.md}.", "in place of '@{notes.md}'"),
        (
            "opencode",
            "codex",
            "$1 $2 $3 $4 $5 $6 $7 $8 $9 $10",
            "Codex supports 9 numbered arguments, and the command has more",
        ),
        (
            "ours",
            "claude",
            TEMPLATE.replace("{{ code }}", "{{ code|upper }}"),
            "does more with 'code' than insert it, which no Claude Code command can do. Give 'code' a default",
        ),
        (
            "ours",
            "codex",
            TEMPLATE.replace("{{ focus }}", "{{ focus }} in $HOME"),
            "the host would ask for 'CODE', 'FOCUS', 'HOME'",
        ),
        (
            "ours",
            "claude",
            TEMPLATE.replace("Review {{", "$0 {{"),
            "it would have a different text: 'word0 word0, and look for word1.', not '$0 word0, and look for word1.'",
        ),
        (
            "ours",
            "claude",
            TEMPLATE.replace("---\nReview", "messages:\n  - text: Hello\n---\nReview"),
            "a command is one text, but the prompt has several messages",
        ),
    ],
)
def test_an_inexpressible_command_is_refused(
    tmp_path: Path, source: str, target: str, text: str, reason: str
) -> None:
    with pytest.raises(PromptError) as raised:
        convert(tmp_path, source, text, target)
    assert reason in str(raised.value)


MOOD = """---
description: Tell of the day.
arguments:
  - name: done
    required: true
  - name: mood
    enum: [calm, proud]
    default: calm
---
"""


@pytest.mark.parametrize(
    "text",
    [
        '{% if mood == "proud" %}Boast: {% endif %}{{ done }}',
        '{{ "Boast: " if mood == "proud" else "" }}{{ done }}',
        '{% set tone = mood %}{% if tone == "proud" %}Boast: {% endif %}{{ done }}',
        "{{ done }}{% include '_mood.md' %}",
        "{{ done }}{% if mood %}, {{ mood }}{% endif %}",
    ],
)
def test_an_argument_in_a_condition_takes_its_default(tmp_path: Path, text: str) -> None:
    write(tmp_path, {"_mood.md": "{% if mood == 'proud' %}Boast{% endif %}", "a.md": f"{MOOD}{text}"})
    library = Library(tmp_path)
    library.scan()
    made = make_command(library.rendering("a"), library.source("a"), HOSTS["claude"])
    calm = ", calm" * (", {{" in text)
    assert made.data.decode() == f"---\ndescription: Tell of the day.\n---\n\n$ARGUMENTS{calm}\n"
    assert "the optional argument 'mood'" in made.losses


def test_a_required_argument_in_a_condition_is_refused(tmp_path: Path) -> None:
    front = MOOD.replace("default: calm", "required: true")
    text = front + '{% if mood == "proud" %}Boast: {% endif %}{{ done }}'
    with pytest.raises(PromptError) as raised:
        convert(tmp_path, "ours", text, "claude")
    assert raised.value.line == 10
    assert "Give 'mood' a default, or export it as a skill" in str(raised.value)


def test_arguments_are_matched_by_name(tmp_path: Path) -> None:
    text = TEMPLATE.replace("Review {{ code }}, and look for {{ focus }}.", "Look for {{ focus }} in {{ code }}.")
    assert b"Look for $FOCUS in $CODE." in convert(tmp_path, "ours", text, "codex").data
    assert b"Look for ${input:focus} in ${input:code}." in convert(tmp_path, "ours", text, "vscode").data


def test_lost_longer_fences_are_listed(tmp_path: Path) -> None:
    made = convert(tmp_path, "ours", TEMPLATE.replace("Review {{ code }}", "{{ code|fence }}"), "claude")
    assert made.losses[-2] == "longer fences around arguments with a fence in them"


def test_an_argument_used_as_a_default_is_lost_and_listed(tmp_path: Path) -> None:
    text = TEMPLATE.replace("{{ focus }}.", "{{ focus|default(other) }}.")
    text = text.replace("    default: everything\n", "  - name: other\n")
    made = convert(tmp_path, "ours", text, "claude")
    assert made.losses == ("the text for optional arguments that are left out",)


def test_an_unused_required_argument_is_dropped_and_listed(tmp_path: Path) -> None:
    text = TEMPLATE.replace("default: everything", "required: true").replace("{{ focus }}", "bugs")
    assert convert(tmp_path, "ours", text, "claude").losses == ("the unused argument 'focus'",)


def test_the_language_of_a_fence_takes_its_default(tmp_path: Path) -> None:
    made = convert(tmp_path, "ours", TEMPLATE.replace("Review {{ code }}", "{{ code|fence(focus) }}"), "claude")
    assert b"```everything\n$ARGUMENTS\n```" in made.data
    assert "the optional argument 'focus'" in made.losses


def test_a_host_with_one_placeholder_takes_the_required_argument(tmp_path: Path) -> None:
    made = convert(tmp_path, "ours", TEMPLATE, "gemini")
    assert b"Review {{args}}, and look for everything." in made.data
    assert made.losses == ("the default of arguments", "the optional argument 'focus'")
