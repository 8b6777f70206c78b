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
from .toml_tree import parse_toml, toml_value

Span = tuple[int, int]


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
        first, *others = _spans(text, client, name)
        changed, receipt = _without(text, others), known or Receipt("")
        changed, start = changed[: first[0]] + block + changed[first[1] :], first[0]
    else:
        before = _lead(text, newline)
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
    spans, receipt = _spans(text, client, name), receipts.get(name)
    (start, end), before, after = spans[0], b"", b""
    if receipt is not None:
        before, after = receipt.before.encode(), receipt.after.encode()
    is_whole = len(spans) == 1 and text[:start].endswith(before) and text[end:].startswith(after)
    if receipt is not None and is_whole:
        left = text[: start - len(before)] + text[end + len(after) :]
    else:
        left = _without(text, spans)
    _check(left, {**document, client.key: servers}, client)
    return left, {other: one for other, one in receipts.items() if other != name}


def _spans(text: bytes, client: Client, name: str) -> list[Span]:
    """Where the tables of an entry stand, in their order; those with nothing but blanks between them are one.

    Comments behind the last pair of a table are not part of it, but for one on that line.
    """
    found: list[Span] = []
    for table in parse_toml(text).parts():
        if table.kind not in ("table", "table_array_element"):
            continue
        parts = list(table.parts())
        if parts[1].path()[:2] != [client.key, name]:
            continue
        end = next(part.end for part in reversed(parts) if part.kind != "comment")
        end = max(part.end for part in parts if part.end == end or b"\n" not in text[end : part.end])
        # To the parser the blanks at the end of a line, and half of CRLF, may be a part of the pair.
        end = len(text[:end].rstrip(b" \t\r"))
        if found and not text[found[-1][1] : table.start].strip():
            found[-1] = (found[-1][0], end)
        else:
            found.append((table.start, end))
    if not found:
        raise ValueError(f"{name!r} has no table [{client.key}.{name}] of its own: change it by hand")
    return found


def _lead(text: bytes, newline: bytes) -> bytes:
    """What has to stand before a new table at the end."""
    if not text.strip(b"\xef\xbb\xbf \t\r\n"):
        return b"" if text.endswith((b"\n", b"\xef\xbb\xbf")) or not text else newline
    if not text.endswith(b"\n"):
        return newline * 2
    return b"" if text.endswith((b"\n\n", b"\n\r\n")) else newline


def _without(text: bytes, spans: list[Span]) -> bytes:
    """The text without these lines, and one of the empty lines around each."""
    for start, end in reversed(spans):
        past = text.find(b"\n", end) + 1 or len(text)
        head, tail = text[:start], text[past:]
        if tail.startswith((b"\n", b"\r\n")):
            tail = tail[tail.index(b"\n") + 1 :]
        elif not tail and head.endswith((b"\n\n", b"\n\r\n")):
            head = head.removesuffix(b"\n").removesuffix(b"\r")
        text = head + tail
    return text


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
