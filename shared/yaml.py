"""YAML limited to strings, numbers, lists and mappings.

Plain scalars have the meaning of YAML 1.2's core schema, except that numbers in other bases, infinities and NaN are
strings, as are `yes`, `no` and dates.

pyyaml only parses the text into events, from which this module builds the values. So pyyaml never constructs an
object, a tag is an error, depth and size are limited while the value is built, and the line of each key is known.
"""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from .text import is_unicode

_INTEGER = re.compile(r"[-+]?[0-9]{1,300}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]{1,300}|[0-9]{1,300}(\.[0-9]{0,300})?)([eE][-+]?[0-9]{1,3})?")
_BREAKS = frozenset("\x85\u2028\u2029")
"""Characters that end a line in YAML 1.1 only. A string with any of them is written in double quotes, as escapes; in
a block they would be lost."""
_CONSTANTS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


class YamlLimits(NamedTuple):
    """Limits on a YAML document. A value counts again each time that an alias repeats it."""

    characters: int = 1_000_000
    """Maximum number of characters in the text, and in all values together."""
    values: int = 20_000
    """Maximum number of values: scalars, lists and mappings."""
    depth: int = 20
    """Maximum depth of nested lists and mappings."""


_LIMITS = YamlLimits()


class YamlError(ValueError):
    """An error in a YAML document. `line` counts from 1 in its file."""

    def __init__(self, reason: str, line: int) -> None:
        self.reason = reason
        self.line = line
        super().__init__(reason, line)

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}"


class YamlMapping(dict[str, Any]):
    """A mapping that knows its line in the file and the lines of its keys, which count from 1."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: dict[str, int] = {}
        """The line of each key."""


class _Size(NamedTuple):
    """The number of values, and of all their characters."""

    values: int
    characters: int


class _Unfinished(NamedTuple):
    """A list or mapping that is being built."""

    value: YamlMapping | list[Any]
    anchor: str | None
    size_before: _Size
    """The size of everything before it, from which its own size follows at its end."""
    keys: list[str]
    """In a mapping, the key whose value comes next, if the key has been read; otherwise empty."""


def read_yaml(text: str, *, what: str = "it", line: int = 1, limits: YamlLimits = _LIMITS) -> Any:
    """Return the value in `text`; None if `text` is empty. In errors `what` is the name of the text, and `line` the
    number of its first line in its file. Raises YamlError."""
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
    """Return a mapping of plain values as YAML, with multi-line strings as blocks: the inverse of `read_yaml`."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """A dumper that writes values in full instead of as aliases."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

    def text(dumper: yaml.SafeDumper, data: str) -> yaml.ScalarNode:
        style = "|" if "\n" in data else None if _resolve_scalar(data) == data else '"'
        style = style if _BREAKS.isdisjoint(data) else '"'
        return dumper.represent_scalar("tag:yaml.org,2002:str", data, style=style)

    Dumper.add_representer(str, text)
    return str(yaml.dump(value, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=110))


class _Builder:
    """Builds values from the events of pyyaml's parser."""

    def __init__(self, what: str, line: int, limits: YamlLimits) -> None:
        self._what = what
        self._first_line = line
        self._limits = limits
        self._unfinished: list[_Unfinished] = []
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
                    collection = self._unfinished.pop()
                    values, characters = self._size
                    size = _Size(
                        values - collection.size_before.values, characters - collection.size_before.characters
                    )
                    self._add_value(collection.value, collection.anchor, size)
        return self._documents

    def _open_collection(self, value: YamlMapping | list[Any], anchor: str | None, line: int) -> None:
        if len(self._unfinished) >= self._limits.depth:
            raise YamlError(f"{self._what} is nested more than {self._limits.depth} levels deep", line)
        self._refuse_as_key(line)
        self._unfinished.append(_Unfinished(value, anchor, self._size, []))
        self._count(_Size(1, 0), line)

    def _add_scalar(self, event: Any, line: int) -> None:
        text = event.value
        if not is_unicode(text):
            raise YamlError("a string contains a lone surrogate", line)
        size = _Size(1, len(text))
        self._count(size, line)
        innermost = self._unfinished[-1] if self._unfinished else None
        if innermost is not None and isinstance(innermost.value, YamlMapping) and not innermost.keys:
            if text in innermost.value:
                raise YamlError(f"the key {text[:80]!r} is given twice", line)
            innermost.keys.append(text)
            innermost.value.lines[text] = line
            return
        self._add_value(_resolve_scalar(text) if event.implicit[0] else text, event.anchor, size)

    def _add_alias(self, anchor: str, line: int) -> None:
        self._refuse_as_key(line)
        if anchor not in self._anchors:
            raise YamlError(f"the alias {anchor[:80]!r} is not defined before it", line)
        value, size = self._anchors[anchor]
        self._count(size, line)
        self._add_value(value, None, size)

    def _refuse_as_key(self, line: int) -> None:
        innermost = self._unfinished[-1] if self._unfinished else None
        if innermost is not None and isinstance(innermost.value, YamlMapping) and not innermost.keys:
            raise YamlError("a key is not a plain string", line)

    def _count(self, size: _Size, line: int) -> None:
        self._size = _Size(self._size.values + size.values, self._size.characters + size.characters)
        if self._size.values > self._limits.values:
            raise YamlError(f"{self._what} has more than {self._limits.values:,} values", line)
        if self._size.characters > self._limits.characters:
            raise YamlError(f"the values of {self._what} have more than {self._limits.characters:,} characters", line)

    def _add_value(self, value: Any, anchor: str | None, size: _Size) -> None:
        if anchor is not None:
            self._anchors[anchor] = value, size
        if not self._unfinished:
            self._documents.append(value)
            return
        innermost = self._unfinished[-1]
        if isinstance(innermost.value, list):
            innermost.value.append(value)
        else:
            innermost.value[innermost.keys.pop()] = value


def _resolve_scalar(text: str) -> Any:
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text
