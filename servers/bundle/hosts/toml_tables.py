"""Where tables stand in a text of TOML, how one is put at its end, and how some are taken out."""

from .toml_tree import parse_toml

Span = tuple[int, int]


def spans(text: bytes, path: list[str]) -> list[Span]:
    """Where the tables at `path` stand, in their order; those with nothing but blanks between them are one.

    Comments behind the last pair of a table are not part of it, but for one on that line.
    """
    found: list[Span] = []
    for table in parse_toml(text).parts():
        if table.kind not in ("table", "table_array_element"):
            continue
        parts = list(table.parts())
        if parts[1].path()[: len(path)] != path:
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
        raise ValueError(f"{path[-1]!r} has no table [{'.'.join(path)}] of its own: change it by hand")
    return found


def lead(text: bytes, newline: bytes) -> bytes:
    """What has to stand before a new table at the end."""
    if not text.strip(b"\xef\xbb\xbf \t\r\n"):
        return b"" if text.endswith((b"\n", b"\xef\xbb\xbf")) or not text else newline
    if not text.endswith(b"\n"):
        return newline * 2
    return b"" if text.endswith((b"\n\n", b"\n\r\n")) else newline


def without(text: bytes, found: list[Span]) -> bytes:
    """The text without these lines, and one of the empty lines around each."""
    for start, end in reversed(found):
        past = text.find(b"\n", end) + 1 or len(text)
        head, tail = text[:start], text[past:]
        if tail.startswith((b"\n", b"\r\n")):
            tail = tail[tail.index(b"\n") + 1 :]
        elif not tail and head.endswith((b"\n\n", b"\n\r\n")):
            head = head.removesuffix(b"\n").removesuffix(b"\r")
        text = head + tail
    return text
