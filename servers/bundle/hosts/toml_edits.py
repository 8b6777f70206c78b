"""Inserts an entry into a TOML file, or removes it. The rest of the file stays unchanged, byte for byte.

A new entry is a table, `[mcp_servers.NAME]`, at the end of the file, where a table is always valid. Each edit is
checked: if the result does not have the intended value, the edit is refused.
"""

import json
from collections.abc import Mapping
from typing import Any

import tomli_w

from .clients import Client
from .json_edits import Edit, Receipt, digest_of
from .toml_tree import remove_spans, separator, table_spans, toml_value


def insert_entry(
    text: bytes, client: Client, name: str, entry: dict[str, Any], previous: Receipt | None = None
) -> Edit:
    """Insert an entry into the text of a client's file, or replace the one whose receipt is `previous`.

    Raises ValueError for a file that the client can't read, and if its servers are not separate tables.
    """
    document = toml_value(text)
    servers = document.get(client.key, {})
    newline = b"\r\n" if text.partition(b"\n")[0].endswith(b"\r") else b"\n"
    block = tomli_w.dumps({client.key: {name: entry}}).rstrip("\n").encode().replace(b"\n", newline)
    if name in servers:
        first, *others = table_spans(text, [client.key, name])
        changed, receipt = remove_spans(text, others), previous or Receipt("")
        changed, start = changed[: first[0]] + block + changed[first[1] :], first[0]
    else:
        before = separator(text, newline)
        changed, receipt = (
            text + before + block + newline,
            Receipt("", before=before.decode(), after=newline.decode()),
        )
        start = len(text) + len(before)
    _check(changed, {**document, client.key: {**servers, name: entry}}, client)
    return Edit(changed, receipt._replace(digest=digest_of(entry)), start, start + len(block))


def remove_entry(
    text: bytes, client: Client, name: str, receipts: Mapping[str, Receipt]
) -> tuple[bytes, dict[str, Receipt]]:
    """Return the text without the entry called `name`, and the receipts of the other entries.

    Everything that was inserted with the entry is removed too, which restores the earlier text. If there is no
    receipt, or the text around the entry has been changed, the tables of the entry are removed, each with an empty
    line. Raises ValueError like `insert_entry`, and if the entry does not exist.
    """
    document = toml_value(text)
    servers = dict(document.get(client.key, {}))
    if servers.pop(name, None) is None:
        raise ValueError(f"has no server {name!r}")
    tables, receipt = table_spans(text, [client.key, name]), receipts.get(name)
    (start, end), before, after = tables[0], b"", b""
    if receipt is not None:
        before, after = receipt.before.encode(), receipt.after.encode()
    is_whole = len(tables) == 1 and text[:start].endswith(before) and text[end:].startswith(after)
    if receipt is not None and is_whole:
        changed = text[: start - len(before)] + text[end + len(after) :]
    else:
        changed = remove_spans(text, tables)
    _check(changed, {**document, client.key: servers}, client)
    return changed, {other: other_receipt for other, other_receipt in receipts.items() if other != name}


def _check(text: bytes, expected: dict[str, Any], client: Client) -> None:
    """Raise ValueError unless the value of the document in `text` is `expected`."""
    try:
        is_equal = _canonical(toml_value(text), client) == _canonical(expected, client)
    except ValueError:
        is_equal = False
    if not is_equal:
        raise ValueError(
            f"its servers are not tables [{client.key}.NAME] that can be changed individually: edit the file by hand"
        )


def _canonical(document: dict[str, Any], client: Client) -> str:
    # As text, because NaN does not equal itself. An empty table of servers equals a missing one.
    members = {key: value for key, value in document.items() if key != client.key or value}
    return json.dumps(members, sort_keys=True, default=repr)
