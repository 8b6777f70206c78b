"""The formatting of a JSON file, so that an inserted entry looks like the other ones."""

import json
from typing import Any, NamedTuple

from .jsonc import Element


class Style(NamedTuple):
    """The formatting of the members of one object."""

    newline: bytes
    """The line ending; empty if the object is on one line."""
    indent: bytes
    """The indentation of a member."""
    unit: bytes
    """One step of indentation."""
    comma: bytes
    """The text between two members on one line."""
    colon: bytes
    """The text between a key and its value."""

    @property
    def before_member(self) -> bytes:
        """The white space before a member."""
        return self.newline + self.indent if self.newline else b""

    @property
    def before_brace(self) -> bytes:
        """The white space before the closing brace."""
        return self.newline + self.indent.removesuffix(self.unit) if self.newline else b""

    def render(self, value: Any) -> bytes:
        """Return the JSON of the value of a member."""
        separators = (",", self.colon.decode()) if self.newline else (self.comma.decode(), self.colon.decode())
        indent = self.unit.decode() if self.newline else None
        text = json.dumps(value, ensure_ascii=False, indent=indent, separators=separators).encode()
        return text.replace(b"\n", self.newline + self.indent)

    def member(self, name: str, value: bytes) -> bytes:
        """Return the text of a member, given the JSON of its value."""
        return json.dumps(name, ensure_ascii=False).encode() + self.colon + value


DEFAULT = Style(b"\n", b"  ", b"  ", b", ", b": ")


def style_of(text: bytes, container: Element, outer: Style | None = None) -> Style:
    """Return the style of the members of the object `container`. `outer` is that of the enclosing object, if any."""
    members = container.members()
    if not members:
        return (
            inner_style(outer) if outer is not None else DEFAULT._replace(newline=_newline(text, container) or b"\n")
        )
    last = members[-1].element
    before = text[: last.start]
    indent = before[before.rfind(b"\n") + 1 :]
    key = next(iter(last.parts()))
    colon = b":" + _space(text[last.start + key.end - key.start : members[-1].value.start])
    comma = b"," + (
        _space(text[members[0].element.end : members[1].element.start]) if len(members) > 1 else colon[1:]
    )
    if indent.strip() or b"\n" not in text[container.start : last.start]:
        return Style(b"", b"", b"", comma, colon)
    line = text[text.rfind(b"\n", 0, container.start) + 1 : container.start]
    indent_before = line[: len(line) - len(line.lstrip(b" \t"))]
    container_indent = outer.indent if outer is not None and outer.newline else indent_before
    unit = indent.removeprefix(container_indent) if indent.startswith(container_indent) else b""
    return Style(_newline(text, container) or b"\n", indent, unit or (outer.unit if outer else b"  "), comma, colon)


def inner_style(outer: Style) -> Style:
    """Return the style of an object nested in an object of style `outer`."""
    return outer._replace(indent=outer.indent + outer.unit)


def _newline(text: bytes, container: Element) -> bytes:
    """Return the ending of the first line in the object, else in the file; empty if neither has one."""
    for part in (text[container.start : container.end], text):
        end = part.find(b"\n")
        if end >= 0:
            return b"\r\n" if part[:end].endswith(b"\r") else b"\n"
    return b""


def _space(between: bytes) -> bytes:
    """Return the white space after the colon or comma in `between`, the text between two elements; a space if there
    is anything else in it."""
    blanks = between.strip(b":,")
    return blanks if not blanks.strip(b" \t") else b" "
