"""Placeholders as each host fills them. The rows of Claude Code are what its version 2.1.330 sent."""

import pytest

from servers.prompts.format.definitions import Prompt
from servers.prompts.format.forms import Kind, parse_file
from servers.prompts.format.placeholders import fill_placeholders

NAMED = "---\narguments: [issue, branch]\n---\n"
CLAUDE = [
    ("zero $0 one $1 two $2 all $ARGUMENTS", "", "zero $0 one $1 two $2 all "),
    ("zero $0 one $1 two $2 all $ARGUMENTS", 'a "b c" d', 'zero a one b c two d all a "b c" d'),
    ("one $1 two $2", "a b", "one b two $2"),
    ("Budget: $1.2M, $5 per seat, $1,000", "", "Budget: $1.2M, $5 per seat, $1,000"),
    ("Budget: $1.2M, $5 per seat, $1,000", "x y", "Budget: y.2M, $5 per seat, y,000"),
    ("only $5 here", "a b", "only $5 here\n\nARGUMENTS: a b"),
    (r"Cost \$2.70 and \$ARGUMENTS and \\$1 end $ARGUMENTS", "x y", r"Cost $2.70 and $ARGUMENTS and \\y end x y"),
    (r"\$HOME \$x $0 $7", "a", r"\$HOME \$x a $7"),
    (r"\$0 \$1 $5", "a b", "$0 $1 $5\n\nARGUMENTS: a b"),
    ("A $ARGUMENTS[0] B $ARGUMENTS[1] C $ARGUMENTS[5]", 'x "y z"', "A x B y z C $ARGUMENTS[5]"),
    ("awk '{print $1}' seen[$0]++ $ARGUMENTS", "q", "awk '{print $1}' seen[q]++ q"),
    ("use ${ARGUMENTS} and $ARGUMENTSX and $10 and $1a", "p q", "use ${ARGUMENTS} and p qX and $10 and $1a"),
    ("$0 $ARGUMENTS", """'$ARGUMENTS' "$0\"""", """$ARGUMENTS '$ARGUMENTS' "$0\""""),
    ("x $ARGUMENTS[0]y $0$1 $7", "a b", "x ay ab $7"),
    ("$0 $7", "it's broken", "it's broken $7"),
    ("---\nargument-hint: [what]\n---\nJust text", "hello world", "Just text\n\nARGUMENTS: hello world"),
]
OTHERS = [
    ("codex", "$1 to $9, $ARGUMENTS, $$5", {"arguments": "a 'b c'"}, "a to , a b c, $$5"),
    ("codex", "$1|$2|$4", {"arguments": r"""a\ b "c\"d\e"'"f'""" + "\n'' g"}, 'a b|c"d\\e"f|g'),
    ("codex", "Pay $3.50 of $1", {}, "Pay .50 of "),
    ("codex", "Say: $ARGUMENTS!", {}, "Say: !"),
    ("codex", "Say $$ARGUMENTS, $$1, $1", {"arg1": "$2"}, "Say $$ARGUMENTS, $$1, $2"),
    ("codex", "$FILE in $TICKET_ID for $1", {"FILE": "a.py"}, "a.py in $TICKET_ID for $1"),
    ("opencode", "$1, $2, $ARGUMENTS", {"arguments": "a b c"}, "a, b c, a b c"),
    ("opencode", "$1 and $2", {"arg1": "a", "arg2": "b c"}, "a and b c"),
    ("opencode", "Pay $3.50", {}, "Pay $3.50"),
    ("opencode", "$0 of $ARGUMENTS", {"arguments": "a b"}, " of a b"),
    (
        "vscode",
        "${input:name:Who is it?} ${input:other} ${file} $1",
        {"name": "Ann"},
        "Ann ${input:other} ${file} $1",
    ),
    ("gemini", "Fix {{args}} by !{ls {{args}}}", {"arguments": "it"}, "Fix it by !{ls it}"),
    ("gemini", "Fix it, {{ args }} $1", {}, "Fix it, {{ args }} $1"),
    ("plain", "$1 $ARGUMENTS {{args}}", {}, "$1 $ARGUMENTS {{args}}"),
]


def parsed(text: str, syntax: str) -> Prompt:
    data = f"prompt = '''{text}'''" if syntax == "gemini" else text
    return parse_file(Kind("command", "one", "", syntax), data.encode())  # type: ignore[arg-type]


@pytest.mark.parametrize(("text", "typed", "expected"), CLAUDE)
def test_placeholders_are_filled_as_by_claude_code(text: str, typed: str, expected: str) -> None:
    prompt = parsed(text, "claude")
    given = {"arguments": typed} if prompt.arguments else {}
    assert "".join(fill_placeholders(prompt.messages[0].content, prompt, given)) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"issue": "12", "branch": "main"}, "Fix 12 on main and $issues 12 $x"),
        ({"issue": "12"}, "Fix 12 on  and $issues 12 $x"),
        ({}, "Fix  on  and $issues $0 $x"),
    ],
)
def test_declared_argument_names_of_claude_code_are_filled(given: dict[str, str], expected: str) -> None:
    for head in (NAMED, NAMED.replace("[issue, branch]", "issue branch")):
        prompt = parsed(f"{head}Fix $issue on $branch and $issues $0 $x", "claude")
        assert [one.name for one in prompt.arguments] == ["issue", "branch"]
        assert "".join(fill_placeholders(prompt.messages[0].content, prompt, given)) == expected


@pytest.mark.parametrize(("syntax", "text", "given", "expected"), OTHERS)
def test_placeholders_are_filled_as_by_other_hosts(
    syntax: str, text: str, given: dict[str, str], expected: str
) -> None:
    prompt = parsed(text, syntax)
    assert given.keys() <= {one.name for one in prompt.arguments}
    assert "".join(fill_placeholders(prompt.messages[0].content, prompt, given)) == expected


@pytest.mark.parametrize(
    ("syntax", "text", "expected"),
    [
        ("claude", "$0 and $1, $0", ["arg0", "arg1"]),
        ("claude", "Budget: $1.2M, $5 per seat, $1,000", ["arguments"]),
        ("claude", "awk '{print $1}'", ["arguments"]),
        ("claude", r"\$0 alone", []),
        ("claude", "No place", []),
        ("codex", "$1 and $2", ["arg1", "arg2"]),
        ("codex", "$1 and $4", ["arguments"]),
        ("codex", "Costs $$1", []),
        ("vscode", "${input:a} ${input:b:Which?} ${input:a:What?}", ["a", "b"]),
        ("gemini", "{{args}}", ["arguments"]),
    ],
)
def test_arguments_are_derived_from_placeholders(syntax: str, text: str, expected: list[str]) -> None:
    assert [one.name for one in parsed(text, syntax).arguments] == expected
