"""Inserts an entry into a JSON file, or removes it, at the positions that the parser reports.

Nothing is reformatted: an edit only inserts or removes bytes. With the receipt, the inserted bytes can be found
again, so that removing them restores the file byte for byte.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from .clients import Client
from .configured import json_entries, servers_member
from .jsonc import Element, Member, parse
from .style import DEFAULT, Style, inner_style, style_of


class Receipt(NamedTuple):
    """Which bytes were inserted into a file together with one entry."""

    digest: str
    """The digest of the value of the entry, which does not depend on its formatting."""
    created: Literal["entry", "key", "document"] = "entry"
    """The outermost element created for the entry: itself, the key for all servers, or the whole document."""
    comma: bool = False
    """True if a comma was inserted after the previous member."""
    before: str = ""
    """The text that was inserted directly before the entry."""
    after: str = ""
    """The text that was inserted directly after the entry."""
    former: str = ""
    """The digest of the entry that was replaced, if the bundle had inserted that too; else empty. If the change was
    interrupted, that entry is still in the file."""

    def is_of(self, entry: Any) -> bool:
        """Return True if `entry` is unchanged since it was inserted."""
        return digest_of(entry) in (self.digest, self.former)


class Edit(NamedTuple):
    """A changed file, and the position of the inserted entry."""

    text: bytes
    receipt: Receipt
    start: int
    end: int


class _Slot(NamedTuple):
    """Where a new member of an object is inserted: at the offset `at`, between the texts `before` and `after`. A
    comma is inserted at `comma_at`, unless that is None."""

    at: int
    before: bytes
    after: bytes
    comma_at: int | None


def insert_entry(
    text: bytes, client: Client, name: str, entry: dict[str, Any], previous: Receipt | None = None
) -> Edit:
    """Insert an entry into the text of a client's file, or replace the one whose receipt is `previous`.

    Raises ValueError, with line and column if possible, for a file that the client can't read.
    """
    digest = digest_of(entry)
    servers = servers_member(text, client)
    root = parse(text, client.format == "jsonc")
    if root is None:
        # The file contains no value yet, but maybe comments.
        newline = b"\r\n" if b"\r\n" in text else b"\n"
        outer = DEFAULT._replace(newline=newline)
        inner = inner_style(outer)
        lead = newline if text.strip() and not text.endswith((b"\n", b"\xef\xbb\xbf")) else b""
        before = lead + b"{" + outer.before_member + outer.member(client.key, b"{") + inner.before_member
        after = inner.before_brace + b"}" + outer.before_brace + b"}" + newline
        slot = _Slot(len(text), before, after, None)
        return _insert(text, slot, inner.member(name, inner.render(entry)), Receipt(digest_of(entry), "document"))
    outer = style_of(text, root)
    if servers is None:
        slot, inner = _slot(text, root, outer), inner_style(outer)
        before = slot.before + outer.member(client.key, b"{") + inner.before_member
        slot = slot._replace(before=before, after=inner.before_brace + b"}" + slot.after)
        return _insert(text, slot, inner.member(name, inner.render(entry)), Receipt(digest, "key"))
    style = style_of(text, servers.value, outer)
    present = servers.value.member(name)
    if present is not None:
        value, value_element = style.render(entry), present.value
        changed = text[: value_element.start] + value + text[value_element.end :]
        receipt = (previous or Receipt(""))._replace(digest=digest)
        return Edit(changed, receipt, present.element.start, value_element.start + len(value))
    slot = _slot(text, servers.value, style)
    return _insert(text, slot, style.member(name, style.render(entry)), Receipt(digest))


def remove_entry(
    text: bytes, client: Client, name: str, receipts: Mapping[str, Receipt]
) -> tuple[bytes, dict[str, Receipt]]:
    """Return the text without the entry called `name`, and the receipts of the other entries, in the order in which
    these were inserted.

    Everything that was inserted with the entry is removed too, which restores the earlier text. If there is no
    receipt, or the text around the entry has been changed, the entry is removed with one comma. The key for all
    servers is removed as well if it was created for the entry and is empty now.

    Raises ValueError like `insert_entry`, and if the entry does not exist.
    """
    others = {other: receipt for other, receipt in receipts.items() if other != name}
    receipt = receipts.get(name)
    restored = _restore(text, client, name, receipt) if receipt is not None else None
    if restored is None and receipt is not None:
        # Later entries may be inside elements that were created for this one. So remove them first, and then insert
        # them again.
        order = list(receipts)
        reinserted = _restore_and_reinsert(text, client, order[order.index(name) :], receipts)
        if reinserted is not None:
            return reinserted[0], {**others, **reinserted[1]}
    if restored is not None:
        return restored, others
    servers = _require_servers(text, client, name)
    text = _remove_member(text, servers.value, _get_entry(servers, name))
    remaining, root = servers_member(text, client), parse(text, client.format == "jsonc")
    if receipt is None or receipt.created == "entry" or remaining is None or root is None:
        return text, others
    is_bare = [part.kind for part in remaining.value.parts()] == ["{", "}"]
    return _remove_member(text, root, remaining) if is_bare else text, others


def _restore_and_reinsert(
    text: bytes, client: Client, order: Sequence[str], receipts: Mapping[str, Receipt]
) -> tuple[bytes, dict[str, Receipt]] | None:
    """Return the text without the first entry of `order`, after removing all of these in reverse order and inserting
    the others again, and their new receipts. None if one of them has been changed since it was inserted."""
    entries = json_entries(text, client)
    for name in reversed(order):
        if name not in entries or not receipts[name].is_of(entries[name]):
            return None
        restored = _restore(text, client, name, receipts[name])
        if restored is None:
            return None
        text = restored
    renewed: dict[str, Receipt] = {}
    for name in order[1:]:
        edit = insert_entry(text, client, name, entries[name])
        text, renewed[name] = edit.text, edit.receipt
    return text, renewed


def _restore(text: bytes, client: Client, name: str, receipt: Receipt) -> bytes | None:
    """Return the text as it was before the entry was inserted; None if the text around the entry has been changed."""
    servers = _require_servers(text, client, name)
    entry = _get_entry(servers, name).element
    before, after = receipt.before.encode(), receipt.after.encode()
    start, end = entry.start - len(before), entry.end + len(after)
    if text[start : entry.start] != before or text[entry.end : end] != after:
        return None
    root = parse(text, client.format == "jsonc")
    container, member = (servers.value, entry) if receipt.created == "entry" else (root, servers.element)
    if container is None:
        return None
    # The position of the comma that was inserted with the member; an empty range if there was none, None if unknown.
    comma: tuple[int, int] | None = None
    following = next(
        (part.start for part in container.parts() if part.kind == "," and part.start >= member.end), None
    )
    if receipt.after.endswith(",") or (not receipt.comma and len(container.members()) == 1):
        comma = (member.start, member.start)
    elif receipt.comma and following == member.end:
        # A later member follows, whose comma is after this one. Remove that, and leave the comma before this one to
        # the later member.
        comma = (member.end, member.end + 1)
    elif receipt.comma and following is None:
        ends = [other.element.end for other in container.members() if other.element.end <= member.start]
        comma = (ends[-1], ends[-1] + 1) if ends and text[ends[-1] : ends[-1] + 1] == b"," else None
    if comma is None:
        return None
    for cut_start, cut_end in sorted([(start, end), comma], reverse=True):
        text = text[:cut_start] + text[cut_end:]
    return text


def _require_servers(text: bytes, client: Client, name: str) -> Member:
    servers = servers_member(text, client)
    if servers is None or servers.value.member(name) is None:
        raise ValueError(f"has no server {name!r}")
    return servers


def _get_entry(servers: Member, name: str) -> Member:
    return next(member for member in servers.value.members() if member.name == name)


def digest_of(entry: Any) -> str:
    """Return the digest of an entry, by which it can be seen whether it has changed."""
    # `default` is for dates, which TOML has.
    canonical = json.dumps(entry, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _slot(text: bytes, container: Element, style: Style) -> _Slot:
    """Return where a new last member of `container` is inserted: after the last member, and comments on its line."""
    parts = list(container.parts())
    pairs = [index for index, part in enumerate(parts) if part.kind == "pair"]
    last = pairs[-1] if pairs else 0
    trailing = next((index for index in range(last, len(parts)) if parts[index].kind == ","), None)
    anchor = parts[last if trailing is None else trailing]
    at, ends_with_line_comment = anchor.end, False
    for part in parts[parts.index(anchor) + 1 : -1]:
        if part.kind != "comment" or (pairs and b"\n" in text[at : part.start]):
            break
        at, ends_with_line_comment = part.end, text.startswith(b"//", part.start)
    gap = style.before_member
    if not gap and pairs:
        gap = style.comma[1:]
    if ends_with_line_comment and not style.newline:
        gap = b"\n"
    after = b"," if trailing is not None else b""
    if not pairs and b"\n" not in text[at : parts[-1].start]:
        after = style.before_brace
    comma_at = parts[last].end if pairs and trailing is None else None
    return _Slot(at, gap, after, comma_at)


def _insert(text: bytes, slot: _Slot, member: bytes, receipt: Receipt) -> Edit:
    comma = b"" if slot.comma_at is None else b","
    head = text[: slot.at] if slot.comma_at is None else text[: slot.comma_at] + comma + text[slot.comma_at : slot.at]
    start = len(head) + len(slot.before)
    changed = head + slot.before + member + slot.after + text[slot.at :]
    complete = receipt._replace(comma=bool(comma), before=slot.before.decode(), after=slot.after.decode())
    return Edit(changed, complete, start, start + len(member))


def _remove_member(text: bytes, container: Element, member: Member) -> bytes:
    """Return the text without `member` and one comma. If an empty line remains, it is removed too; comments stay."""
    commas = [part for part in container.parts() if part.kind == ","]
    following = next((comma for comma in commas if comma.start >= member.element.end), None)
    preceding = next((comma for comma in reversed(commas) if comma.end <= member.element.start), None)
    cuts = [(member.element.start, member.element.end)]
    if (comma := following or preceding) is not None:
        cuts.append((comma.start, comma.end))
    line = text.rfind(b"\n", 0, member.element.start) + 1
    rest = text.find(b"\n", max(end for _, end in cuts))
    for start, end in sorted(cuts, reverse=True):
        text = text[:start] + text[end:]
        line = line - (end - start) if end <= line else line
        rest = rest - (end - start) if rest >= 0 else rest
    if 0 <= line <= rest and not text[line:rest].strip():
        text = text[:line] + text[rest + 1 :]
    return text
