"""What is put into a file of TOML can be taken out again without a trace, whatever the file looks like."""

import re
import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servers.bundle.hosts import toml_edits
from servers.bundle.hosts.clients import get_client
from servers.bundle.hosts.toml_edits import put, remove
from tests.servers.bundle.hosts.documents import Document, go_in_order, told
from tests.servers.bundle.hosts.toml_documents import toml_documents

CODEX = get_client("codex")
ENTRY = {"command": "/opt/mcp", "args": ["--root", "/tmp/ü"], "env": {"K": "V\n"}}


def servers_of(text: bytes) -> Any:
    return tomllib.loads(text.decode().removeprefix("\ufeff")).get("mcp_servers", {})


def there_and_back(text: bytes) -> bytes:
    """The text with the entry; the way back is checked."""
    edit = put(text, CODEX, "new", ENTRY)
    assert remove(edit.text, CODEX, "new", {"new": edit.receipt}) == (text, {})
    assert edit.text[edit.start : edit.end].startswith(b"[mcp_servers.new]")
    return edit.text


FILES = {
    "nothing": "",
    "an empty line": "\n",
    "a mark": "\ufeff",
    "a comment alone": "# mine",
    "no table": 'model = "x"',
    "an empty line at the end": 'model = "x"\n\n',
    "a table": '[mcp_servers.old]\ncommand = "x"\n\n[projects."/work"]\ntrust_level = "trusted"\n',
    "the servers in one table": '[mcp_servers]\nold = { command = "x" }\n',
    "dotted keys": 'mcp_servers.old.command = "x"\n',
    "lines that end in CRLF": '# c\r\n[mcp_servers.old]\r\ncommand = "x"\r\n',
    "a table within a text": 'notes = """\n[mcp_servers.new]\ncommand = 1\n"""\n',
    "a name with a dot": '[mcp_servers."new.er"]\ncommand = "x"\n',
}


def test_a_file_is_as_it_was_after_the_way_there_and_back() -> None:
    for text in FILES.values():
        changed = there_and_back(text.encode())
        assert servers_of(changed) == {**servers_of(text.encode()), "new": ENTRY}
        assert changed.startswith(text.encode())


def test_lines_end_as_the_others_do_and_an_empty_one_stands_before_the_entry() -> None:
    changed = there_and_back(FILES["lines that end in CRLF"].encode())
    assert changed.count(b"\n") == changed.count(b"\r\n")
    assert there_and_back(b"a = 1\n").startswith(b'a = 1\n\n[mcp_servers.new]\ncommand = "/opt/mcp"\n')


LONG = settings(max_examples=60)


@pytest.mark.slow
@LONG
@given(toml_documents())
def test_any_document_is_as_it_was(document: Document) -> None:
    before = document.value or {}
    if "new" in before.get("mcp_servers", {}) or not can_grow(before, document.text):
        return
    after = {**before, "mcp_servers": {**before.get("mcp_servers", {}), "new": ENTRY}}
    changed = there_and_back(document.text)
    assert told(tomllib.loads(changed.decode().removeprefix("\ufeff"))) == told(after)


def can_grow(document: dict[str, Any], text: bytes) -> bool:
    """Whether a table may still come to the servers."""
    try:
        tomllib.loads(text.decode().removeprefix("\ufeff") + "\n[mcp_servers.newest]\n")
    except tomllib.TOMLDecodeError:
        return False
    return isinstance(document.get("mcp_servers", {}), dict)


@pytest.mark.slow
@LONG
@given(toml_documents(), st.permutations(["x", "y", "z"]))
def test_several_entries_go_in_any_order_without_a_trace(document: Document, order: list[str]) -> None:
    if can_grow(document.value or {}, document.text):
        go_in_order(toml_edits, CODEX, document.text, order, servers_of)


@pytest.mark.slow
@LONG
@given(toml_documents())
def test_an_entry_without_a_receipt_goes_alone(document: Document) -> None:
    before = servers_of(document.text) if isinstance((document.value or {}).get("mcp_servers", {}), dict) else {}
    for name in before:
        try:
            text, _ = remove(document.text, CODEX, name, {})
        except ValueError as refused:
            assert "by hand" in str(refused)  # noqa: PT017 - it may be one that has no table
        else:
            assert told(servers_of(text)) == told({other: one for other, one in before.items() if other != name})


OWN = """\
# about the other
[mcp_servers.other]
command = "x"

# about mine
[mcp_servers.new] # why
command = "y" # so
# behind
[mcp_servers.new.env]
K = "V"

[last]
"""


def test_an_entry_of_the_user_goes_with_one_empty_line_and_leaves_comments() -> None:
    text, _ = remove(OWN.encode(), CODEX, "new", {})
    assert text.decode() == (
        '# about the other\n[mcp_servers.other]\ncommand = "x"\n\n# about mine\n# behind\n[last]\n'
    )


def test_an_entry_that_is_replaced_keeps_its_place() -> None:
    edit = put(OWN.encode(), CODEX, "new", {"command": "z"})
    assert edit.text.decode() == (
        '# about the other\n[mcp_servers.other]\ncommand = "x"\n\n# about mine\n'
        '[mcp_servers.new]\ncommand = "z"\n# behind\n[last]\n'
    )


def test_an_entry_that_was_updated_goes_without_a_trace() -> None:
    text = b"a = 1"
    first = put(text, CODEX, "new", {"command": "x"})
    second = put(first.text, CODEX, "new", ENTRY, first.receipt)
    assert remove(second.text, CODEX, "new", {"new": second.receipt}) == (text, {})


def test_what_came_behind_the_entry_stays() -> None:
    edit = put(b"a = 1\n", CODEX, "new", ENTRY)
    grown = edit.text + b'\n[projects."/work"]\ntrust_level = "trusted"\n'
    text, _ = remove(grown, CODEX, "new", {"new": edit.receipt})
    assert text == b'a = 1\n\n[projects."/work"]\ntrust_level = "trusted"\n'


def test_what_can_not_be_changed_is_refused() -> None:
    reasons = {
        b"mcp_servers = { old = {} }\n": "its servers are not tables [mcp_servers.NAME]",
        b"[mcp_servers]\nnew = { command = 'x' }\n": "'new' has no separate table [mcp_servers.new]",
        b"[mcp_servers.new.env]\nA = 1\n[mcp_servers]\nnew.command = 'x'\n": "its servers are not tables",
    }
    for text, reason in reasons.items():
        with pytest.raises(ValueError, match=re.escape(reason)):
            put(text, CODEX, "new", ENTRY)
    with pytest.raises(ValueError, match="has no server 'new'"):
        remove(b"", CODEX, "new", {})
