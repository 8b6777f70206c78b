"""Entries in JSON files: put in and removed again without a trace, whatever the layout."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servers.bundle.hosts import json_edits
from servers.bundle.hosts.clients import Client, get_client
from servers.bundle.hosts.json_edits import insert_entry, remove_entry
from servers.bundle.hosts.jsonc import parse
from tests.servers.bundle.hosts.documents import Document, documents, go_in_order

ENTRY = {"command": "/opt/mcp", "args": ["--root", "/tmp/ü"], "env": {"K": "V"}}
CURSOR, DESKTOP, CODE = get_client("cursor"), get_client("claude-desktop"), get_client("vscode")


def value_of(text: bytes, client: Client) -> Any:
    root = parse(text, client.format == "jsonc")
    return None if root is None else root.value()


def servers_of(text: bytes) -> Any:
    return (value_of(text, CURSOR) or {}).get("mcpServers", {})


def put_and_remove(text: bytes, client: Client) -> bytes:
    """Returns the text with the entry, after a check that removal restores the text."""
    edit = insert_entry(text, client, "new", ENTRY)
    back, left = remove_entry(edit.text, client, "new", {"new": edit.receipt})
    assert back == text
    assert left == {}
    return edit.text


FILES = {
    "nothing": "",
    "an empty line": "\n",
    "a mark": "\ufeff",
    "an empty object": "{}",
    "an empty object and a newline": "{}\n",
    "an empty object on two lines": "{\n}\n",
    "an empty object with a blank": "{ }",
    "no key": '{\n  "theme": "dark"\n}\n',
    "an empty key": '{\n  "mcpServers": {}\n}\n',
    "an empty key on two lines": '{\n  "mcpServers": {\n  },\n  "x": 1\n}',
    "an entry": '{\n  "mcpServers": {\n    "old": {\n      "command": "x"\n    }\n  }\n}\n',
    "four blanks": '{\n    "mcpServers": {\n        "old": {}\n    }\n}',
    "tabs": '{\n\t"mcpServers": {\n\t\t"old": {}\n\t}\n}\n',
    "lines that end in CRLF": '{\r\n  "mcpServers": {\r\n    "old": {}\r\n  }\r\n}\r\n',
    "both line ends": '{\r\n  "a": 1,\n  "mcpServers": {\n    "old": {}\r\n  }\r\n}',
    "a mark and CRLF": '\ufeff{\r\n  "mcpServers": {}\r\n}\r\n',
    "one line": '{"theme": "dark", "mcpServers": {"old": {"command": "x"}}}',
    "no blanks at all": '{"theme":"dark","mcpServers":{"old":{"command":"x"}}}',
    "no blanks and no key": '{"theme":"dark"}',
    "the key elsewhere": '{\n  "projects": {\n    "/work": {\n      "mcpServers": {}\n    }\n  }\n}',
}
COMMENTED = {
    "a comment alone": "// mine",
    "comments around": "// a\n{\n}\n/* b */\n",
    "a trailing comma": '{\n  "mcpServers": {\n    "old": {},\n  },\n}',
    "a comment behind the last entry": '{\n  "mcpServers": {\n    "old": {} // why\n  }\n}',
    "a comment behind a trailing comma": '{\n  "mcpServers": {\n    "old": {}, // why\n  }\n}',
    "an entry in a comment": '{\n  "mcpServers": {\n    "old": {}\n    // "off": {}\n  }\n}',
    "nothing but comments": '{\n  "mcpServers": { // none\n    /* yet */\n  }\n}',
    "a comment on the one line": '{"a":1 // why\n}',
}


def test_removal_restores_the_file_byte_for_byte() -> None:
    for text in FILES.values():
        for client in (DESKTOP, CURSOR):
            changed = put_and_remove(text.encode(), client)
            before = value_of(text.encode(), client) or {}
            assert value_of(changed, client) == {
                **before,
                "mcpServers": {**before.get("mcpServers", {}), "new": ENTRY},
            }


def test_comments_and_trailing_commas_stay() -> None:
    for text in COMMENTED.values():
        changed = put_and_remove(text.encode(), CURSOR)
        assert value_of(changed, CURSOR)["mcpServers"]["new"] == ENTRY


def test_a_new_entry_has_the_layout_of_the_others() -> None:
    changed = put_and_remove(FILES["tabs"].encode(), DESKTOP)
    lines = changed.decode().splitlines()
    assert lines[3:6] == ['\t\t"new": {', '\t\t\t"command": "/opt/mcp",', '\t\t\t"args": [']
    changed = put_and_remove(FILES["lines that end in CRLF"].encode(), DESKTOP)
    assert changed.count(b"\n") == changed.count(b"\r\n")
    # A file without spaces gets none, and a single line stays one.
    entry = '{"new":{"command":"/opt/mcp","args":["--root","/tmp/ü"],"env":{"K":"V"}}'
    changed = put_and_remove(b'{"mcpServers":{"old":{}}}', DESKTOP)
    assert changed.decode() == f'{{"mcpServers":{{"old":{{}},{entry[1:]}}}}}'
    changed = put_and_remove(b'{"theme": "dark"}', DESKTOP)
    spaced = entry.replace(",", ", ").replace(":", ": ")
    assert changed.decode() == f'{{"theme": "dark", "mcpServers": {spaced}}}}}'
    # A comment stays with the entry it is about.
    changed = put_and_remove(COMMENTED["a comment behind the last entry"].encode(), CURSOR)
    assert changed.decode().splitlines()[2:4] == ['    "old": {}, // why', '    "new": {']


LONG = settings(max_examples=100)


@pytest.mark.slow
@LONG
@given(st.data(), st.sampled_from([CURSOR, DESKTOP]))
def test_removal_restores_any_document(data: st.DataObject, client: Client) -> None:
    document = data.draw(documents("mcpServers", comments=client is CURSOR))
    before = document.value or {}
    changed = put_and_remove(document.text, client)
    assert value_of(document.text, client) == document.value
    assert value_of(changed, client) == {**before, "mcpServers": {**before.get("mcpServers", {}), "new": ENTRY}}


@pytest.mark.slow
@LONG
@given(documents("mcpServers", comments=True), st.permutations(["x", "y", "z"]))
def test_entries_are_removable_in_any_order(document: Document, order: list[str]) -> None:
    go_in_order(json_edits, CURSOR, document.text, order, servers_of)


@pytest.mark.slow
@LONG
@given(documents("mcpServers", comments=True))
def test_removal_without_a_receipt_takes_only_the_entry(document: Document) -> None:
    before = document.value or {}
    for name in before.get("mcpServers", {}):
        text, _ = remove_entry(document.text, CURSOR, name, {})
        others = {other: entry for other, entry in before["mcpServers"].items() if other != name}
        assert value_of(text, CURSOR) == {**before, "mcpServers": others}


def test_removal_without_a_receipt_takes_a_comma() -> None:
    left = {
        "a": '    "b": 2, // b\n    "c": 3\n',
        "b": '    "a": 1,\n     // b\n    "c": 3\n',
        "c": '    "a": 1,\n    "b": 2 // b\n',
    }
    text = '{\n  "mcpServers": {\n    "a": 1,\n    "b": 2, // b\n    "c": 3\n  }\n}\n'
    taken = {name: remove_entry(text.encode(), CURSOR, name, {})[0].decode() for name in left}
    assert taken == {name: f'{{\n  "mcpServers": {{\n{rest}  }}\n}}\n' for name, rest in left.items()}


def test_a_replaced_entry_keeps_its_position() -> None:
    text = b'{"servers": {"a": {"command": "x"}, "b": 1}}'
    edit = insert_entry(text, CODE, "a", {"command": "y"})
    assert edit.text == b'{"servers": {"a": {"command": "y"}, "b": 1}}'


def test_an_updated_entry_is_removed_without_a_trace() -> None:
    text = b'{\n  "theme": 1\n}\n'
    first = insert_entry(text, DESKTOP, "new", {"command": "x"})
    second = insert_entry(first.text, DESKTOP, "new", ENTRY, first.receipt)
    assert remove_entry(second.text, DESKTOP, "new", {"new": second.receipt}) == (text, {})


def test_the_layout_of_a_later_entry_stays() -> None:
    text = b'{\n  "mcpServers": {\n    "old": {}\n  }\n}'
    first = insert_entry(text, DESKTOP, "new", ENTRY)
    second = insert_entry(first.text, DESKTOP, "later", {"command": "x"})
    own = second.text.replace(b'{\n      "command": "x"\n    }', b'{"command":   "x"}')
    left, _ = remove_entry(own, DESKTOP, "new", {"new": first.receipt, "later": second.receipt})
    assert left == b'{\n  "mcpServers": {\n    "old": {},\n    "later": {"command":   "x"}\n  }\n}'


def test_keys_added_after_the_entry_stay() -> None:
    edit = insert_entry(b"{}", DESKTOP, "new", ENTRY)
    grown = edit.text.replace(b'"mcpServers"', b'"theme": 1,\n  "mcpServers"')
    text, _ = remove_entry(grown, DESKTOP, "new", {"new": edit.receipt})
    assert value_of(text, DESKTOP) == {"theme": 1}


def test_a_key_with_a_new_comment_stays() -> None:
    edit = insert_entry(b"{}", CURSOR, "new", ENTRY)
    grown = edit.text.replace(b'"new"', b'// mine\n    "new"')
    text, _ = remove_entry(grown, CURSOR, "new", {"new": edit.receipt})
    assert b"// mine" in text
    assert value_of(text, CURSOR) == {"mcpServers": {}}


def test_duplicate_keys_and_missing_entries_are_refused() -> None:
    with pytest.raises(ValueError, match="the key 'mcpServers' occurs twice"):
        insert_entry(b'{"mcpServers": {}, "mcpServers": {}}', DESKTOP, "new", ENTRY)
    with pytest.raises(ValueError, match="has no server 'new'"):
        remove_entry(b"{}", DESKTOP, "new", {})


def test_javascript_syntax_outside_json_is_refused() -> None:
    texts = ['{"a": [,]}', '{"a": 1,,}', "{,}", "{} /* mine", "{} /*/", "{} // mine\u2028{}", "{'a': 1}"]
    for text in [*texts, '{"a": +1}', '{"a": 1\xa0}']:
        with pytest.raises(ValueError, match="is not JSON with comments: line 1, column "):
            insert_entry(text.encode(), CURSOR, "new", ENTRY)
