"""The printed difference of a change: the lines of the entry, those around it, and no secrets."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from servers.bundle.hosts import toml_edits
from servers.bundle.hosts.clients import get_client
from servers.bundle.hosts.differences import MAX_LINE, Line, find_differences
from servers.bundle.hosts.json_edits import insert_entry

CURSOR, CODEX = get_client("cursor"), get_client("codex")
ENTRY = {"command": "/opt/mcp", "args": ["--header", "X:hush"], "env": {"TOKEN": "hush"}}


def shown(before: str, entry: dict[str, object] = ENTRY) -> list[Line]:
    text = before.encode()
    edit = insert_entry(text, CURSOR, "new", entry)
    return find_differences(CURSOR, text, edit.text, (edit.start, edit.end), {"X:hush", "hush"})


def shown_in_toml(before: str) -> list[Line]:
    text = before.encode()
    edit = toml_edits.insert_entry(text, CODEX, "new", {**ENTRY, "env": {"TOKEN": "hush", "MODE": "ro"}})
    return find_differences(CODEX, text, edit.text, (edit.start, edit.end), {"X:hush", "hush"})


def text_of(lines: list[Line]) -> str:
    return "\n".join(f"{sign} {text}" for sign, text in lines)


def test_a_json_entry_is_shown_with_the_lines_around_it() -> None:
    before = '{\n  "a": 1,\n  "mcpServers": {\n    "old": {\n      "command": "x"\n    }\n  },\n  "c": 3\n}\n'
    lines = shown(before, {"command": "/opt/mcp", "args": []})
    assert [f"{sign} {text}" for sign, text in lines] == [
        '    "mcpServers": {',
        '      "old": {',
        '        "command": …',
        "+     },",
        '+     "new": {',
        '+       "command": "/opt/mcp",',
        '+       "args": []',
        "      }",
        "    },",
        '    "c": …',
    ]


SECRETS = [
    '{\n  "mcpServers": {\n    "old": {"env": {"T": "hush"}}\n  }\n}',
    '{\n  "mcpServers": {\n    "old": {"headers": {"T": "hush"}}\n  }\n}',
    '{\n  "mcpServers": {\n    "old": {"command": "hush", "args": ["hush", "hush"]}\n  }\n}',
    '{\n  "key": "hush",\n  "list": ["hush"], "pin": 1234\n}',
    '{\n  // "T": "hush"\n  "mcpServers": {} /* hush\n hush */\n}',
    '// hush\n/* hush\n hush */ {"mcpServers": {}} // hush',
    '{"mcpServers":{"old":{"env":{"T":"hush"}}}}',
]


def test_only_keys_of_other_settings_are_shown() -> None:
    for secret in SECRETS:
        lines = shown(secret)
        assert "hush" not in text_of(lines)
        assert "1234" not in text_of(lines)
        assert any(line.sign == "+" for line in lines)


def test_a_toml_entry_is_shown_with_the_lines_around_it() -> None:
    lines = shown_in_toml('key = "hush" # hush\n# hush\n[other]\nnumbers = [1234, 1.5, 2024-01-01] # hush\n')
    assert [f"{sign} {text}" for sign, text in lines] == [
        "  …",
        "  [other]",
        "  numbers = […, …, …] …",
        "+ ",
        "+ [mcp_servers.new]",
        '+ command = "/opt/mcp"',
        "+ args = [",
        '+     "--header",',
        "+     …,",
        "+ ]",
        "+ ",
        "+ [mcp_servers.new.env]",
        "+ TOKEN = …",
        '+ MODE = "ro"',
    ]


def test_values_of_a_replaced_entry_are_not_shown() -> None:
    lines = shown('{\n  "mcpServers": {\n    "new": {\n      "env": {"T": "hush"}\n    }\n  }\n}')
    assert "hush" not in text_of(lines)
    assert '-       "env": {"T": …}' in text_of(lines)


def test_only_the_change_within_a_long_line_is_shown() -> None:
    before = json.dumps({"hush": 1, "list": ["hush"] * MAX_LINE}, separators=(",", ":"))
    (line,) = shown(before, {"command": "/opt/mcp", "args": []})
    assert line == Line("+", ',"mcpServers":{"new":{"command":"/opt/mcp","args":[]}}')


@settings(max_examples=40)
@given(st.text("ab\n \"'{}[]:,/*#\\", max_size=40))
def test_texts_and_comments_are_never_shown(text: str) -> None:
    def comment(mark: str) -> str:
        return f"{mark} " + text.replace("\n", f"hush\n{mark} ") + "hush\n"

    value = json.dumps(text + "hush")
    assert "hush" not in text_of(shown(comment("//") + f'{{"a": {value}}}\n'))
    assert "hush" not in text_of(shown_in_toml(comment("#") + f"a = {value}\n" + comment("#")))
