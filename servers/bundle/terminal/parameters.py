"""What a tool takes, by its JSON Schema: how it is called in a table, and what a text on a command line means to it.

The schema is the server's, so nothing in it is relied on: what can't be understood takes any value.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple

from shared.text import nearest

from .endings import Misuse

_MAX_DEPTH = 8
"""Of references, and of choices within choices."""
_WORDS = {"string": "text", "array": "list", "null": "nothing"}
_SWITCHES = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_PYTHON: dict[str, tuple[type, ...]] = {
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}
_EXAMPLES: dict[str, Any] = {"boolean": True, "integer": 1, "number": 1, "string": "..."}
_EXAMPLE_DEPTH, _EXAMPLE_FIELDS = 3, 5
_NOTHING = object()


class Parameter(NamedTuple):
    """One argument of a tool, or one field of a form."""

    name: str
    types: frozenset[str] = frozenset()
    """The types of JSON that it takes; any where there are none."""
    choices: tuple[Any, ...] = ()
    """The values that are named; where there are no `types` it takes no others."""
    titles: tuple[str, ...] = ()
    """How each of the choices is called."""
    items: "Parameter | None" = None
    """What a list has in it."""
    required: bool = False
    default: Any = None
    description: str = ""
    schema: Mapping[str, Any] = {}
    """Its part of the schema."""
    root: Mapping[str, Any] = {}
    """The whole schema, to which references lead."""

    @property
    def kind(self) -> str:
        """What it takes, in a few words."""
        named = [", ".join(map(as_text, self.choices))] if self.choices else []
        known = sorted(self.types - {"null", "array"} - ({"integer"} if "number" in self.types else set()))
        lists = [f"list of {self.items.kind}" if self.items else "list"] if "array" in self.types else []
        return " or ".join([*named, *(_WORDS.get(one, one) for one in known), *lists]) or "anything"

    def read(self, texts: Sequence[str]) -> Any:
        """The value that is meant by what was written for it, each time it was given. Raises Misuse."""
        is_list_alone = self.types - {"null"} == {"array"} and not self.choices
        if len(texts) == 1 and not is_list_alone:
            return self.read_one(texts[0])
        if "array" not in self.types:
            if self.types or self.choices:
                raise Misuse(f"{self.name} takes one value, and was given {len(texts)}")
            return [self.read_one(text) for text in texts]
        whole = _parsed(texts[0]) if len(texts) == 1 else _NOTHING
        if isinstance(whole, list):
            return whole
        # No item of it, and no text: some servers take an object where they declare a list alone.
        if isinstance(whole, dict) and (self.items is None or "object" not in self.items.types):
            return whole
        item = self.items or Parameter(self.name)
        return [item._replace(name=self.name).read_one(text) for text in texts]

    def read_one(self, text: str) -> Any:
        """The value that is meant by one text; a list only as JSON. Raises Misuse."""
        for choice in self.choices:
            if text == as_text(choice):
                return choice
        if not self.types and self.choices:
            close = nearest(text, map(as_text, self.choices))
            raise Misuse(f"{self.name} takes {self.kind}, not {text!r}" + (f"; {close}?" if close else ""))
        parsed = _parsed(text)
        if not self.types:
            return text if parsed is _NOTHING else parsed
        # So `5` is a number where both numbers and texts are taken, and `"5"` a text.
        if parsed is not _NOTHING and any(_is_of(parsed, one) for one in self.types):
            return parsed
        if "string" in self.types:
            return text
        if "boolean" in self.types and text.lower() in _SWITCHES:
            return _SWITCHES[text.lower()]
        example = f"; for example {self.name}='{as_text(make_example(self))}'" if "object" in self.types else ""
        raise Misuse(f"{self.name} takes {self.kind}, not {text!r}{example}")


def make_example(parameter: Parameter, depth: int = 0) -> Any:
    """Return a value that the parameter may take: of an object the first fields that are required, or the first."""
    if parameter.choices:
        return parameter.choices[0]
    if "object" in parameter.types:
        fields = parameters_of(parameter.schema, parameter.root).values() if depth < _EXAMPLE_DEPTH else ()
        chosen = [field for field in fields if field.required] or list(fields)[:1]
        return {field.name: make_example(field, depth + 1) for field in chosen[:_EXAMPLE_FIELDS]}
    if "array" in parameter.types:
        return [make_example(parameter.items, depth + 1)] if parameter.items and depth < _EXAMPLE_DEPTH else []
    return next((_EXAMPLES[kind] for kind in sorted(parameter.types & _EXAMPLES.keys())), "...")


def as_text(value: Any) -> str:
    """How a value is written on a command line."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def from_json(text: str) -> Any:
    """The value of a JSON text. Raises ValueError, also for NaN and for a number that would become infinite."""
    try:
        return json.loads(text, parse_constant=_refused, parse_float=_finite)
    except RecursionError:
        raise ValueError("too deep") from None


def parameters_of(schema: Any, root: Mapping[str, Any] | None = None) -> dict[str, Parameter]:
    """What a tool with this `inputSchema` takes, or a form with this `requestedSchema`, in its order; `root` is the
    whole schema where this is a part of it."""
    whole = schema if isinstance(schema, dict) else {}
    root = whole if root is None else root
    parts = list(_alternatives(whole, root))
    required = {name for part in parts for name in _list(part.get("required")) if isinstance(name, str)}
    found = {}
    for part in parts:
        properties = part.get("properties")
        for name, one in properties.items() if isinstance(properties, dict) else ():
            found[name] = _parameter(name, one, root)._replace(required=name in required)
    return found


def takes_others(schema: Any) -> bool:
    """Whether a tool says that it takes arguments that its schema does not name."""
    root = schema if isinstance(schema, dict) else {}
    # Without a word JSON Schema lets others in; who names arguments and gets another one gets it by mistake.
    said = root.get("additionalProperties", not isinstance(root.get("properties"), dict))
    return said is not False or bool(root.get("patternProperties"))


def read_arguments(words: Sequence[str], schema: Any) -> dict[str, Any]:
    """The arguments that are given as `key=value`, each as the schema wants it. Raises Misuse."""
    known, texts = parameters_of(schema), texts_of(words)
    for name in texts:
        if name not in known and not takes_others(schema):
            raise Misuse(unknown("argument", name, known))
    return {name: known.get(name, Parameter(name)).read(given) for name, given in texts.items()}


def texts_of(words: Sequence[str]) -> dict[str, list[str]]:
    """What is given for each key. Raises Misuse for a word that is no `key=value`."""
    texts: dict[str, list[str]] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name:
            raise Misuse(f"{word!r} is not an argument: write KEY=VALUE")
        texts.setdefault(name, []).append(text)
    return texts


def unknown(what: str, name: str, known: Mapping[str, Any] | Sequence[str]) -> str:
    """Says that there is no such thing, and what may be meant."""
    names = list(known)
    close = nearest(name, names)
    if close is not None:
        return f"there is no {what} {name!r}; did you mean {close}?"
    return f"there is no {what} {name!r}; there are: {', '.join(names) or 'none'}"


def _parameter(name: str, schema: Any, root: Mapping[str, Any], depth: int = 0) -> Parameter:
    whole = schema if isinstance(schema, dict) else {}
    types: set[str] = set()
    choices: list[tuple[Any, str]] = []
    lists, is_open = [], False
    for part in _alternatives(whole, root):
        named = list(_choices(part))
        choices += named
        kinds = [part["type"]] if isinstance(part.get("type"), str) else _list(part.get("type"))
        said = {one for one in kinds if isinstance(one, str) and (one == "string" or one in _PYTHON)}
        if not named:
            types |= said
            is_open = is_open or not said
        if "array" in said:
            lists.append(part.get("items"))
    items = _parameter(name, lists[-1], root, depth + 1) if lists and depth < _MAX_DEPTH else None
    return Parameter(
        name,
        frozenset(() if is_open else types),
        tuple(value for value, _ in choices),
        tuple(title for _, title in choices),
        items,
        default=whole.get("default"),
        description=_text(whole.get("description")) or _text(whole.get("title")),
        schema=whole,
        root=root,
    )


def _alternatives(
    schema: Mapping[str, Any], root: Mapping[str, Any], depth: int = 0, seen: set[int] | None = None
) -> Iterator[Mapping[str, Any]]:
    """The schema itself, or what it is made of, with references within the document followed.

    Each part comes once: where references lead round, the ways to a part multiply with each step.
    """
    seen = set() if seen is None else seen
    if depth > _MAX_DEPTH or id(schema) in seen:
        return
    seen.add(id(schema))
    parts = [one for key in ("anyOf", "oneOf", "allOf") for one in _list(schema.get(key))]
    if isinstance(schema.get("$ref"), str):
        reference = schema["$ref"]
        found: Any = root if reference.startswith("#") else None
        for step in reference[2:].split("/") if len(reference) > 1 else ():
            # In this order, or ~01 would become a slash (RFC 6901, section 4).
            key = step.replace("~1", "/").replace("~0", "~")
            found = found.get(key) if isinstance(found, dict) else None
        parts.append(found)
    if not parts or "properties" in schema or _named(parts):
        yield schema
    for part in () if _named(parts) else parts:
        if isinstance(part, dict):
            yield from _alternatives(part, root, depth + 1, seen)


def _choices(part: Mapping[str, Any]) -> Iterator[tuple[Any, str]]:
    """The values that one schema names, and how each is called."""
    titles = _list(part.get("enumNames"))
    for number, value in enumerate(_list(part.get("enum"))):
        yield value, _text(titles[number]) if number < len(titles) else as_text(value)
    for one in [part, *_list(part.get("oneOf")), *_list(part.get("anyOf"))]:
        if isinstance(one, dict) and "const" in one:
            yield one["const"], _text(one.get("title")) or as_text(one["const"])


def _named(parts: Sequence[Any]) -> bool:
    """Whether they are values with titles (2025-11-25, Elicitation, Enum Schemas)."""
    return bool(parts) and all(isinstance(part, dict) and "const" in part for part in parts)


def _parsed(text: str) -> Any:
    try:
        return from_json(text)
    except ValueError:
        return _NOTHING


def _refused(text: str) -> Any:
    raise ValueError(f"{text} is not valid JSON")


def _finite(text: str) -> float:
    value = float(text)
    return value if isfinite(value) else _refused(text)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _is_of(value: Any, kind: str) -> bool:
    is_switch = isinstance(value, bool)  # which is an int as well to Python
    return kind in _PYTHON and isinstance(value, _PYTHON[kind]) and is_switch is (kind == "boolean")
