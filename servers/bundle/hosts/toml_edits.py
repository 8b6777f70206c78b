"""Putting an entry into a file of TOML, and taking it out again, with everything else left byte for byte.

An entry is a table of its own, `[mcp_servers.NAME]`, at the end of the file, where a table may always stand. Whatever
an edit has made of the file must mean what it was meant to, or the file is left alone.
"""

import json
from collections.abc import Mapping
from typing import Any

import tomli_w

from .clients import Client
from .json_edits import Edit, Receipt, digest_of
from .toml_tree import lead, spans, toml_value, without


def put(text: bytes, client: Client, name: str, entry: dict[str, Any], known: Receipt | None = None) -> Edit:
    """Puts an entry into the text of a client's file, in place of the one of that name, whose receipt is `known`.

    Raises ValueError for a file that the client does not read, and where its servers stand in another form than
    tables of their own.
    """
    document = toml_value(text)
    servers = document.get(client.key, {})
    newline = b"\r\n" if text.partition(b"\n")[0].endswith(b"\r") else b"\n"
    block = tomli_w.dumps({client.key: {name: entry}}).rstrip("\n").encode().replace(b"\n", newline)
    if name in servers:
        first, *others = spans(text, [client.key, name])
        changed, receipt = without(text, others), known or Receipt("")
        changed, start = changed[: first[0]] + block + changed[first[1] :], first[0]
    else:
        before = lead(text, newline)
        changed, receipt = (
            text + before + block + newline,
            Receipt("", before=before.decode(), after=newline.decode()),
        )
        start = len(text) + len(before)
    _check(changed, {**document, client.key: {**servers, name: entry}}, client)
    return Edit(changed, receipt._replace(digest=digest_of(entry)), start, start + len(block))


def take(text: bytes, client: Client, name: str, receipts: Mapping[str, Receipt]) -> tuple[bytes, dict[str, Receipt]]:
    """The text without an entry, and the receipts of the others.

    With the entry goes what was put there for it, so that the text is as it was before the entry came. Where that
    can't be told, the tables of the entry go, each with an empty line. Raises ValueError as `put` does, and where
    there is no such entry.
    """
    document = toml_value(text)
    servers = dict(document.get(client.key, {}))
    if servers.pop(name, None) is None:
        raise ValueError(f"has no server {name!r}")
    found, receipt = spans(text, [client.key, name]), receipts.get(name)
    (start, end), before, after = found[0], b"", b""
    if receipt is not None:
        before, after = receipt.before.encode(), receipt.after.encode()
    is_whole = len(found) == 1 and text[:start].endswith(before) and text[end:].startswith(after)
    if receipt is not None and is_whole:
        left = text[: start - len(before)] + text[end + len(after) :]
    else:
        left = without(text, found)
    _check(left, {**document, client.key: servers}, client)
    return left, {other: one for other, one in receipts.items() if other != name}


def _check(text: bytes, meant: dict[str, Any], client: Client) -> None:
    """Raises ValueError where the text does not mean that."""
    try:
        is_meant = _canonical(toml_value(text), client) == _canonical(meant, client)
    except ValueError:
        is_meant = False
    if not is_meant:
        raise ValueError(
            f"its servers are not tables [{client.key}.NAME] that can be changed one by one: do it by hand"
        )


def _canonical(document: dict[str, Any], client: Client) -> str:
    # No servers are as good as none, and what is not a number equals not even itself.
    kept = {key: value for key, value in document.items() if key != client.key or value}
    return json.dumps(kept, sort_keys=True, default=repr)
