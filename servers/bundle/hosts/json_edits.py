"""Putting an entry into a file of JSON, and taking it out again, at the places of the parser.

Nothing is written anew: an edit inserts bytes or removes them, and what it inserted its receipt can find again, so
that taking it out leaves the file as it was before, byte for byte.
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
    """What was put into a file with one entry."""

    digest: str
    """Of the entry, however it is laid out."""
    created: Literal["entry", "key", "document"] = "entry"
    """The outermost thing that was made for it."""
    comma: bool = False
    """Whether the member before it got a comma."""
    before: str = ""
    """What was put directly before the entry."""
    after: str = ""
    """What was put directly after it."""
    former: str = ""
    """The digest of the entry it was put in place of, where that was put there as well: it still stands there where
    the change was cut short."""

    def is_of(self, entry: Any) -> bool:
        """Whether `entry` is as it was put there."""
        return digest_of(entry) in (self.digest, self.former)


class Edit(NamedTuple):
    """A changed file, and where in it the entry stands that was put there."""

    text: bytes
    receipt: Receipt
    start: int
    end: int


class _Slot(NamedTuple):
    """Where a new member of an object goes."""

    at: int
    before: bytes
    after: bytes
    comma_at: int | None


def put(text: bytes, client: Client, name: str, entry: dict[str, Any], known: Receipt | None = None) -> Edit:
    """Puts an entry into the text of a client's file, in place of the one of that name, whose receipt is `known`.

    Raises ValueError, with line and column where the fault has some, for a file that the client does not read.
    """
    digest = digest_of(entry)
    servers = servers_member(text, client)
    root = parse(text, client.format == "jsonc")
    if root is None:
        # There was nothing yet, but perhaps comments.
        newline = b"\r\n" if b"\r\n" in text else b"\n"
        outer = DEFAULT._replace(newline=newline)
        inner = inner_style(outer)
        lead = newline if text.strip() and not text.endswith((b"\n", b"\xef\xbb\xbf")) else b""
        before = lead + b"{" + outer.gap + outer.member(client.key, b"{") + inner.gap
        after = inner.closing + b"}" + outer.closing + b"}" + newline
        slot = _Slot(len(text), before, after, None)
        return _inserted(text, slot, inner.member(name, inner.rendered(entry)), Receipt(digest_of(entry), "document"))
    outer = style_of(text, root)
    if servers is None:
        slot, inner = _slot(text, root, outer), inner_style(outer)
        before = slot.before + outer.member(client.key, b"{") + inner.gap
        slot = slot._replace(before=before, after=inner.closing + b"}" + slot.after)
        return _inserted(text, slot, inner.member(name, inner.rendered(entry)), Receipt(digest, "key"))
    style = style_of(text, servers.value, outer)
    present = servers.value.member(name)
    if present is not None:
        value, place = style.rendered(entry), present.value
        changed = text[: place.start] + value + text[place.end :]
        receipt = (known or Receipt(""))._replace(digest=digest)
        return Edit(changed, receipt, present.whole.start, place.start + len(value))
    slot = _slot(text, servers.value, style)
    return _inserted(text, slot, style.member(name, style.rendered(entry)), Receipt(digest))


def take(text: bytes, client: Client, name: str, receipts: Mapping[str, Receipt]) -> tuple[bytes, dict[str, Receipt]]:
    """The text without an entry, and the receipts of the others, which stand in the order the entries came in.

    With the entry goes what was put there for it, so that the text is as it was before the entry came. Where the
    receipt is missing, or somebody has changed what is around the entry, the entry goes with one comma, and the key
    of all servers if it came with the entry and has nothing more.

    Raises ValueError as `put` does, and where there is no such entry.
    """
    others = {other: receipt for other, receipt in receipts.items() if other != name}
    receipt = receipts.get(name)
    taken = _taken(text, client, name, receipt) if receipt is not None else None
    if taken is None and receipt is not None:
        # Those that came after it may stand in what was made for it: they go out first, and then in again.
        order = list(receipts)
        again = _without_later(text, client, order[order.index(name) :], receipts)
        if again is not None:
            return again[0], {**others, **again[1]}
    if taken is not None:
        return taken, others
    servers = _servers(text, client, name)
    text = _removed(text, servers.value, _entry(servers, name))
    left, root = servers_member(text, client), parse(text, client.format == "jsonc")
    if receipt is None or receipt.created == "entry" or left is None or root is None:
        return text, others
    is_bare = [part.kind for part in left.value.parts()] == ["{", "}"]
    return _removed(text, root, left) if is_bare else text, others


def _without_later(
    text: bytes, client: Client, order: Sequence[str], receipts: Mapping[str, Receipt]
) -> tuple[bytes, dict[str, Receipt]] | None:
    """The text without the first of these, which came in this `order`; None where one of them was changed since."""
    entries = json_entries(text, client)
    for name in reversed(order):
        if name not in entries or not receipts[name].is_of(entries[name]):
            return None
        taken = _taken(text, client, name, receipts[name])
        if taken is None:
            return None
        text = taken
    renewed: dict[str, Receipt] = {}
    for name in order[1:]:
        edit = put(text, client, name, entries[name])
        text, renewed[name] = edit.text, edit.receipt
    return text, renewed


def _taken(text: bytes, client: Client, name: str, receipt: Receipt) -> bytes | None:
    """The text as it was before the entry came; None where something has changed around the entry."""
    servers = _servers(text, client, name)
    entry = _entry(servers, name).whole
    before, after = receipt.before.encode(), receipt.after.encode()
    start, end = entry.start - len(before), entry.end + len(after)
    if text[start : entry.start] != before or text[entry.end : end] != after:
        return None
    root = parse(text, client.format == "jsonc")
    container, member = (servers.value, entry) if receipt.created == "entry" else (root, servers.whole)
    if container is None:
        return None
    comma = _comma_of(text, container, member, receipt)
    if comma is None:
        return None
    for cut, past in sorted([(start, end), comma], reverse=True):
        text = text[:cut] + text[past:]
    return text


def _comma_of(text: bytes, container: Element, member: Element, receipt: Receipt) -> tuple[int, int] | None:
    """Where the comma stands that came with the member, nowhere where none did; None where that can't be told."""
    commas = [part.start for part in container.parts() if part.kind == ","]
    following = next((comma for comma in commas if comma >= member.end), None)
    if receipt.after.endswith(",") or (not receipt.comma and len(container.members()) == 1):
        return (member.start, member.start)
    if not receipt.comma:
        return None
    if following is not None:
        # One that came later has put it there, and takes the comma before this one for its own from now on.
        return (following, following + 1) if following == member.end else None
    ends = [one.whole.end for one in container.members() if one.whole.end <= member.start]
    return (ends[-1], ends[-1] + 1) if ends and text[ends[-1] : ends[-1] + 1] == b"," else None


def _servers(text: bytes, client: Client, name: str) -> Member:
    servers = servers_member(text, client)
    if servers is None or servers.value.member(name) is None:
        raise ValueError(f"has no server {name!r}")
    return servers


def _entry(servers: Member, name: str) -> Member:
    return next(member for member in servers.value.members() if member.name == name)


def digest_of(entry: Any) -> str:
    """What tells whether an entry is still the one that was put there."""
    # TOML has dates as well.
    canonical = json.dumps(entry, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _slot(text: bytes, container: Element, style: Style) -> _Slot:
    """Where a new last member of `container` goes: behind the last one, and behind a comment on its line."""
    parts = list(container.parts())
    pairs = [index for index, part in enumerate(parts) if part.kind == "pair"]
    last = pairs[-1] if pairs else 0
    trailing = next((index for index in range(last, len(parts)) if parts[index].kind == ","), None)
    anchor = parts[last if trailing is None else trailing]
    at, lined = anchor.end, False
    for part in parts[parts.index(anchor) + 1 : -1]:
        if part.kind != "comment" or (pairs and b"\n" in text[at : part.start]):
            break
        at, lined = part.end, text.startswith(b"//", part.start)
    gap = style.gap
    if not gap and pairs:
        gap = style.comma[1:]
    if lined and not style.newline:
        gap = b"\n"
    after = b"," if trailing is not None else b""
    if not pairs and b"\n" not in text[at : parts[-1].start]:
        after = style.closing
    comma_at = parts[last].end if pairs and trailing is None else None
    return _Slot(at, gap, after, comma_at)


def _inserted(text: bytes, slot: _Slot, member: bytes, receipt: Receipt) -> Edit:
    comma = b"" if slot.comma_at is None else b","
    head = text[: slot.at] if slot.comma_at is None else text[: slot.comma_at] + comma + text[slot.comma_at : slot.at]
    start = len(head) + len(slot.before)
    changed = head + slot.before + member + slot.after + text[slot.at :]
    told = receipt._replace(comma=bool(comma), before=slot.before.decode(), after=slot.after.decode())
    return Edit(changed, told, start, start + len(member))


def _removed(text: bytes, container: Element, member: Member) -> bytes:
    """The text without one member and one comma; a line that is left empty goes too, and comments stay."""
    commas = [part for part in container.parts() if part.kind == ","]
    following = next((comma for comma in commas if comma.start >= member.whole.end), None)
    preceding = next((comma for comma in reversed(commas) if comma.end <= member.whole.start), None)
    cuts = [(member.whole.start, member.whole.end)]
    if (comma := following or preceding) is not None:
        cuts.append((comma.start, comma.end))
    line = text.rfind(b"\n", 0, member.whole.start) + 1
    rest = text.find(b"\n", max(end for _, end in cuts))
    for start, end in sorted(cuts, reverse=True):
        text = text[:start] + text[end:]
        line = line - (end - start) if end <= line else line
        rest = rest - (end - start) if rest >= 0 else rest
    if 0 <= line <= rest and not text[line:rest].strip():
        text = text[:line] + text[rest + 1 :]
    return text
