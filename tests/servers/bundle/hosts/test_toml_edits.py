"""Entries in TOML files: put in and removed again without a trace, whatever the layout."""

import re
import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servers.bundle.hosts import toml_edits
from servers.bundle.hosts.clients import get_client
from servers.bundle.hosts.toml_edits import insert_entry, remove_entry
from tests.servers.bundle.hosts.documents import Document, go_in_order, plain
from tests.servers.bundle.hosts.toml_documents import toml_documents

CODEX = get_client("codex")
ENTRY = {"command": "/opt/mcp", "args": ["--root", "/tmp/ü"], "env": {"K": "V\n"}}


def servers_of(text: bytes) -> Any:
    return tomllib.loads(text.decode().removeprefix("\ufeff")).get("mcp_servers", {})


def put_and_remove(text: bytes) -> bytes:
    """Returns the text with the entry, after a check that removal restores the text."""
    edit = insert_entry(text, CODEX, "new", ENTRY)
    assert remove_entry(edit.text, CODEX, "new", {"new": edit.receipt}) == (text, {})
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


def test_removal_restores_the_file_byte_for_byte() -> None:
    for text in FILES.values():
        changed = put_and_remove(text.encode())
        assert servers_of(changed) == {**servers_of(text.encode()), "new": ENTRY}
        assert changed.startswith(text.encode())


def test_an_entry_keeps_line_endings_and_follows_an_empty_line() -> None:
    changed = put_and_remove(FILES["lines that end in CRLF"].encode())
    assert changed.count(b"\n") == changed.count(b"\r\n")
    assert put_and_remove(b"a = 1\n").startswith(b'a = 1\n\n[mcp_servers.new]\ncommand = "/opt/mcp"\n')


LONG = settings(max_examples=60)


@pytest.mark.slow
@LONG
@given(toml_documents())
def test_removal_restores_any_document(document: Document) -> None:
    before = document.value or {}
    if "new" in before.get("mcp_servers", {}) or not can_grow(before, document.text):
        return
    after = {**before, "mcp_servers": {**before.get("mcp_servers", {}), "new": ENTRY}}
    changed = put_and_remove(document.text)
    assert plain(tomllib.loads(changed.decode().removeprefix("\ufeff"))) == plain(after)


def can_grow(document: dict[str, Any], text: bytes) -> bool:
    """Returns whether another table can be added to the servers."""
    try:
        tomllib.loads(text.decode().removeprefix("\ufeff") + "\n[mcp_servers.newest]\n")
    except tomllib.TOMLDecodeError:
        return False
    return isinstance(document.get("mcp_servers", {}), dict)


@pytest.mark.slow
@LONG
@given(toml_documents(), st.permutations(["x", "y", "z"]))
def test_entries_are_removable_in_any_order(document: Document, order: list[str]) -> None:
    if can_grow(document.value or {}, document.text):
        go_in_order(toml_edits, CODEX, document.text, order, servers_of)


@pytest.mark.slow
@LONG
@given(toml_documents())
def test_removal_without_a_receipt_takes_only_the_entry(document: Document) -> None:
    before = servers_of(document.text) if isinstance((document.value or {}).get("mcp_servers", {}), dict) else {}
    for name in before:
        try:
            text, _ = remove_entry(document.text, CODEX, name, {})
        except ValueError as refused:
            assert "by hand" in str(refused)  # noqa: PT017 - it may be one that has no table
        else:
            assert plain(servers_of(text)) == plain({other: one for other, one in before.items() if other != name})


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


def test_removal_takes_an_empty_line_and_leaves_comments() -> None:
    text, _ = remove_entry(OWN.encode(), CODEX, "new", {})
    assert text.decode() == (
        '# about the other\n[mcp_servers.other]\ncommand = "x"\n\n# about mine\n# behind\n[last]\n'
    )


def test_a_replaced_entry_keeps_its_position() -> None:
    edit = insert_entry(OWN.encode(), CODEX, "new", {"command": "z"})
    assert edit.text.decode() == (
        '# about the other\n[mcp_servers.other]\ncommand = "x"\n\n# about mine\n'
        '[mcp_servers.new]\ncommand = "z"\n# behind\n[last]\n'
    )


def test_an_updated_entry_is_removed_without_a_trace() -> None:
    text = b"a = 1"
    first = insert_entry(text, CODEX, "new", {"command": "x"})
    second = insert_entry(first.text, CODEX, "new", ENTRY, first.receipt)
    assert remove_entry(second.text, CODEX, "new", {"new": second.receipt}) == (text, {})


def test_text_added_after_the_entry_stays() -> None:
    edit = insert_entry(b"a = 1\n", CODEX, "new", ENTRY)
    grown = edit.text + b'\n[projects."/work"]\ntrust_level = "trusted"\n'
    text, _ = remove_entry(grown, CODEX, "new", {"new": edit.receipt})
    assert text == b'a = 1\n\n[projects."/work"]\ntrust_level = "trusted"\n'


def test_servers_outside_separate_tables_are_refused() -> None:
    reasons = {
        b"mcp_servers = { old = {} }\n": "its servers are not tables [mcp_servers.NAME]",
        b"[mcp_servers]\nnew = { command = 'x' }\n": "'new' has no separate table [mcp_servers.new]",
        b"[mcp_servers.new.env]\nA = 1\n[mcp_servers]\nnew.command = 'x'\n": "its servers are not tables",
    }
    for text, reason in reasons.items():
        with pytest.raises(ValueError, match=re.escape(reason)):
            insert_entry(text, CODEX, "new", ENTRY)
    with pytest.raises(ValueError, match="has no server 'new'"):
        remove_entry(b"", CODEX, "new", {})
