"""YAML limited to strings, numbers, lists and mappings.

Plain scalars have the meaning of YAML 1.2's core schema, without numbers in other bases, infinities and NaN. pyyaml's
parser produces events, from which the values are built here.

So pyyaml never constructs an object, a tag is an error, depth and size are counted while they grow, and each key has
its line number; `yes`, `no` and dates are strings.
"""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from .text import is_unicode

_INTEGER = re.compile(r"[-+]?[0-9]{1,300}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]{1,300}|[0-9]{1,300}(\.[0-9]{0,300})?)([eE][-+]?[0-9]{1,3})?")
_BREAKS = frozenset("\x85\u2028\u2029")
"""Characters that end a line in YAML 1.1, and would be lost; they are escaped between quotes."""
_WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


class YamlLimits(NamedTuple):
    """Limits on a YAML document. The value of an alias counts each time it is used."""

    characters: int = 1_000_000
    """Maximum number of characters in the text, and in all values combined."""
    values: int = 20_000
    depth: int = 20
    """Maximum depth of nested lists and mappings."""


_LIMITS = YamlLimits()


class YamlError(ValueError):
    """An error in a YAML document: the reason, and the line of its file, from 1."""

    def __init__(self, reason: str, line: int) -> None:
        self.reason = reason
        self.line = line
        super().__init__(reason, line)

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}"


class YamlMapping(dict[str, Any]):
    """A mapping that records its lines, from 1."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: dict[str, int] = {}
        """The line of each key."""


class _Size(NamedTuple):
    """The size of values."""

    values: int
    characters: int


class _Open(NamedTuple):
    """A list or mapping whose end has not been reached."""

    value: YamlMapping | list[Any]
    anchor: str | None
    size_before: _Size
    """The size before it."""
    keys: list[str]
    """The key that waits for its value, in a mapping."""


def read_yaml(text: str, *, what: str = "it", line: int = 1, limits: YamlLimits = _LIMITS) -> Any:
    """Return the value in `text`; None if it is empty. `what` is its name in errors; its first line is line `line` of
    its file. Raises YamlError."""
    import yaml

    if len(text) > limits.characters:
        raise YamlError(f"{what} has more than {limits.characters:,} characters", line)
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        values = _Builder(what, line, limits).build(yaml.parse(text, Loader=loader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or getattr(error, "reason", None) or "it can't be read"
        if "mapping values are not allowed" in reason:
            reason = "a string that contains a colon and a space needs quotes"
        raise YamlError(f"{what} is not YAML: {reason}", line if mark is None else line + mark.line) from None
    if len(values) > 1:
        raise YamlError(f"{what} contains more than one document", line)
    return values[0] if values else None


def write_yaml(value: Any) -> str:
    """Return the YAML of a mapping of plain values, which `read_yaml` reads back unchanged, with multi-line strings
    as blocks."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """A dumper with this style."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

    def text(dumper: yaml.SafeDumper, data: str) -> yaml.ScalarNode:
        style = "|" if "\n" in data else None if _resolve_scalar(data) == data else '"'
        style = style if _BREAKS.isdisjoint(data) else '"'
        return dumper.represent_scalar("tag:yaml.org,2002:str", data, style=style)

    Dumper.add_representer(str, text)
    return str(yaml.dump(value, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=110))


class _Builder:
    """Builds values from the events of a parser."""

    def __init__(self, what: str, line: int, limits: YamlLimits) -> None:
        self._what = what
        self._first_line = line
        self._limits = limits
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Any, _Size]] = {}
        self._size = _Size(0, 0)
        self._documents: list[Any] = []

    def build(self, events: Iterable[Any]) -> list[Any]:
        """Return the value of each document."""
        for event in events:
            line = self._first_line + event.start_mark.line
            if getattr(event, "tag", None) is not None:
                raise YamlError(f"{self._what} has a tag (!...), which is not supported", line)
            match type(event).__name__:
                case "ScalarEvent":
                    self._add_scalar(event, line)
                case "AliasEvent":
                    self._add_alias(event.anchor, line)
                case "MappingStartEvent":
                    self._open_collection(YamlMapping(line), event.anchor, line)
                case "SequenceStartEvent":
                    self._open_collection([], event.anchor, line)
                case "MappingEndEvent" | "SequenceEndEvent":
                    collection = self._open.pop()
                    values, characters = self._size
                    size = _Size(
                        values - collection.size_before.values, characters - collection.size_before.characters
                    )
                    self._place_value(collection.value, collection.anchor, size)
        return self._documents

    def _open_collection(self, value: YamlMapping | list[Any], anchor: str | None, line: int) -> None:
        if len(self._open) >= self._limits.depth:
            raise YamlError(f"{self._what} is nested more than {self._limits.depth} levels deep", line)
        self._refuse_as_key(line)
        self._open.append(_Open(value, anchor, self._size, []))
        self._count(_Size(1, 0), line)

    def _add_scalar(self, event: Any, line: int) -> None:
        text = event.value
        if not is_unicode(text):
            raise YamlError("a string contains a lone surrogate", line)
        size = _Size(1, len(text))
        self._count(size, line)
        innermost = self._open[-1] if self._open else None
        if innermost is not None and isinstance(innermost.value, YamlMapping) and not innermost.keys:
            if text in innermost.value:
                raise YamlError(f"the key {text[:80]!r} is given twice", line)
            innermost.keys.append(text)
            innermost.value.lines[text] = line
            return
        self._place_value(_resolve_scalar(text) if event.implicit[0] else text, event.anchor, size)

    def _add_alias(self, anchor: str, line: int) -> None:
        self._refuse_as_key(line)
        if anchor not in self._anchors:
            raise YamlError(f"the alias {anchor[:80]!r} is not defined before it", line)
        value, size = self._anchors[anchor]
        self._count(size, line)
        self._place_value(value, None, size)

    def _refuse_as_key(self, line: int) -> None:
        innermost = self._open[-1] if self._open else None
        if innermost is not None and isinstance(innermost.value, YamlMapping) and not innermost.keys:
            raise YamlError("a key is not a plain string", line)

    def _count(self, size: _Size, line: int) -> None:
        self._size = _Size(self._size.values + size.values, self._size.characters + size.characters)
        if self._size.values > self._limits.values:
            raise YamlError(f"{self._what} has more than {self._limits.values:,} values", line)
        if self._size.characters > self._limits.characters:
            raise YamlError(f"the values of {self._what} have more than {self._limits.characters:,} characters", line)

    def _place_value(self, value: Any, anchor: str | None, size: _Size) -> None:
        if anchor is not None:
            self._anchors[anchor] = value, size
        if not self._open:
            self._documents.append(value)
            return
        innermost = self._open[-1]
        if isinstance(innermost.value, list):
            innermost.value.append(value)
        else:
            innermost.value[innermost.keys.pop()] = value


def _resolve_scalar(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text
