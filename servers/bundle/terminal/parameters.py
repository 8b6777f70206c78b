"""The parameters in a JSON Schema, of a tool or a form: for display, and to convert strings from a command line.

The schema comes from the server, and may be malformed. A parameter whose schema can't be understood accepts any
value.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple

from shared.text import nearest

from .exit_codes import Misuse

_MAX_DEPTH = 8
"""Maximum depth of nested references and choices."""
_TYPE_NAMES = {"string": "text", "array": "list", "null": "nothing"}
_BOOLEANS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
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
    """The JSON types that are accepted; any type if empty."""
    choices: tuple[Any, ...] = ()
    """Allowed values. If `types` is empty, only these are allowed; else also those of these types."""
    titles: tuple[str, ...] = ()
    """The title of each choice."""
    items: "Parameter | None" = None
    """Describes the items, if lists are accepted."""
    required: bool = False
    default: Any = None
    description: str = ""
    schema: Mapping[str, Any] = {}
    """The schema of this parameter."""
    root: Mapping[str, Any] = {}
    """The whole schema, to which references in `schema` lead."""

    @property
    def kind(self) -> str:
        """A short description of the accepted values."""
        listed = [", ".join(map(as_text, self.choices))] if self.choices else []
        kinds = sorted(self.types - {"null", "array"} - ({"integer"} if "number" in self.types else set()))
        lists = [f"list of {self.items.kind}" if self.items else "list"] if "array" in self.types else []
        return (
            " or ".join([*listed, *(_TYPE_NAMES.get(type_name, type_name) for type_name in kinds), *lists])
            or "anything"
        )

    def read(self, texts: Sequence[str]) -> Any:
        """Return the value for `texts`, the strings that were given for this parameter, which may be repeated. Raises
        Misuse if they are not accepted."""
        is_list_alone = self.types - {"null"} == {"array"} and not self.choices
        if len(texts) == 1 and not is_list_alone:
            return self.read_one(texts[0])
        if "array" not in self.types:
            if self.types or self.choices:
                raise Misuse(f"{self.name} takes one value, but got {len(texts)}")
            return [self.read_one(text) for text in texts]
        whole = _parse(texts[0]) if len(texts) == 1 else _NOTHING
        if isinstance(whole, list):
            return whole
        # Pass an object as it is: some servers accept an object although they only declare a list.
        if isinstance(whole, dict) and (self.items is None or "object" not in self.items.types):
            return whole
        item = self.items or Parameter(self.name)
        return [item._replace(name=self.name).read_one(text) for text in texts]

    def read_one(self, text: str) -> Any:
        """Return the value for one string, in which a list must be JSON. Raises Misuse if it is not accepted."""
        for choice in self.choices:
            if text == as_text(choice):
                return choice
        if not self.types and self.choices:
            close = nearest(text, map(as_text, self.choices))
            raise Misuse(
                f"{self.name}: expected {self.kind}, got {text!r}" + (f"; did you mean {close!r}?" if close else "")
            )
        parsed = _parse(text)
        if not self.types:
            return text if parsed is _NOTHING else parsed
        # If numbers and strings are accepted, `5` is a number and `"5"` a string. (In Python, a bool is an int too.)
        kinds = {"boolean"} if isinstance(parsed, bool) else self.types - {"boolean"}
        if any(isinstance(parsed, _PYTHON_TYPES.get(kind, ())) for kind in kinds & self.types):
            return parsed
        if "string" in self.types:
            return text
        if "boolean" in self.types and text.lower() in _BOOLEANS:
            return _BOOLEANS[text.lower()]
        example = f"; for example {self.name}='{as_text(make_example(self))}'" if "object" in self.types else ""
        raise Misuse(f"{self.name}: expected {self.kind}, got {text!r}{example}")


def make_example(parameter: Parameter, depth: int = 0) -> Any:
    """Return a value that the parameter accepts. An object gets the first required fields, or, if none is required,
    the first field."""
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
    """Return how a value is written on a command line."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def from_json(text: str) -> Any:
    """Return the value of a JSON text. Raises ValueError if it is invalid, and for NaN and numbers that are too large
    for a float."""
    try:
        return json.loads(
            text,
            parse_constant=_refuse_constant,
            parse_float=lambda digits: value if isfinite(value := float(digits)) else _refuse_constant(digits),
        )
    except RecursionError:
        raise ValueError("too deep") from None


def parameters_of(schema: Any, root: Mapping[str, Any] | None = None) -> dict[str, Parameter]:
    """Return the parameters in `schema`, the `inputSchema` of a tool or the `requestedSchema` of a form, by name and
    in order. `root` is the whole schema if this is only a part of it."""
    whole = schema if isinstance(schema, dict) else {}
    root = whole if root is None else root
    parts = list(_alternatives(whole, root))
    required = {name for part in parts for name in _list(part.get("required")) if isinstance(name, str)}
    parameters = {}
    for part in parts:
        properties = part.get("properties")
        for name, property_schema in properties.items() if isinstance(properties, dict) else ():
            parameters[name] = _parameter(name, property_schema, root)._replace(required=name in required)
    return parameters


def takes_others(schema: Any) -> bool:
    """Return True if a tool with this schema declares that it accepts other arguments than those in it."""
    root = schema if isinstance(schema, dict) else {}
    # JSON Schema allows others by default. But if a tool declares arguments, another one is most likely a mistake.
    allowed = root.get("additionalProperties", not isinstance(root.get("properties"), dict))
    return allowed is not False or bool(root.get("patternProperties"))


def read_arguments(words: Sequence[str], schema: Any) -> dict[str, Any]:
    """Return the arguments in `words`, each KEY=VALUE, converted to the types in the schema. Raises Misuse."""
    parameters, texts = parameters_of(schema), texts_by_key(words)
    for name in texts:
        if name not in parameters and not takes_others(schema):
            raise Misuse(unknown("argument", name, parameters))
    return {name: parameters.get(name, Parameter(name)).read(values) for name, values in texts.items()}


def texts_by_key(words: Sequence[str]) -> dict[str, list[str]]:
    """Return the strings for each key in `words`. Raises Misuse for a word that is not KEY=VALUE."""
    texts: dict[str, list[str]] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name:
            raise Misuse(f"{word!r} is not an argument: write KEY=VALUE")
        texts.setdefault(name, []).append(text)
    return texts


def unknown(what: str, name: str, existing: Mapping[str, Any] | Sequence[str]) -> str:
    """Return the message that there is no `what` called `name`, with the most similar of the `existing` names."""
    names = list(existing)
    close = nearest(name, names)
    if close is not None:
        return f"there is no {what} {name!r}; did you mean {close!r}?"
    return f"there is no {what} {name!r}; available: {', '.join(names) or 'none'}"


def _parameter(name: str, schema: Any, root: Mapping[str, Any], depth: int = 0) -> Parameter:
    whole = schema if isinstance(schema, dict) else {}
    types: set[str] = set()
    choices: list[tuple[Any, str]] = []
    lists, is_open = [], False
    for part in _alternatives(whole, root):
        listed = list(_choices(part))
        choices += listed
        kinds = [part["type"]] if isinstance(part.get("type"), str) else _list(part.get("type"))
        declared = {kind for kind in kinds if isinstance(kind, str) and (kind == "string" or kind in _PYTHON_TYPES)}
        if not listed:
            types |= declared
            is_open = is_open or not declared
        if "array" in declared:
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
    """Yield the schema itself, or its alternatives, after following references within the document."""
    seen = set() if seen is None else seen
    if depth > _MAX_DEPTH or id(schema) in seen:
        return
    # Visit each subschema only once: with circular references, the number of paths to it multiplies at each step.
    seen.add(id(schema))
    parts = [option for key in ("anyOf", "oneOf", "allOf") for option in _list(schema.get(key))]
    if isinstance(schema.get("$ref"), str):
        reference = schema["$ref"]
        target: Any = root if reference.startswith("#") else None
        for step in reference[2:].split("/") if len(reference) > 1 else ():
            # `~1` first, since otherwise `~01` would become a slash (RFC 6901, section 4).
            key = step.replace("~1", "/").replace("~0", "~")
            target = target.get(key) if isinstance(target, dict) else None
        parts.append(target)
    if not parts or "properties" in schema or _are_constants(parts):
        yield schema
    for part in () if _are_constants(parts) else parts:
        if isinstance(part, dict):
            yield from _alternatives(part, root, depth + 1, seen)


def _choices(part: Mapping[str, Any]) -> Iterator[tuple[Any, str]]:
    """Yield the values that one schema lists, with the title of each."""
    titles = _list(part.get("enumNames"))
    for number, value in enumerate(_list(part.get("enum"))):
        yield value, _text(titles[number]) if number < len(titles) else as_text(value)
    for option in [part, *_list(part.get("oneOf")), *_list(part.get("anyOf"))]:
        if isinstance(option, dict) and "const" in option:
            yield option["const"], _text(option.get("title")) or as_text(option["const"])


def _are_constants(parts: Sequence[Any]) -> bool:
    """Return True if the alternatives `parts` are values with titles (2025-11-25, Elicitation, Enum Schemas)."""
    return bool(parts) and all(isinstance(part, dict) and "const" in part for part in parts)


def _parse(text: str) -> Any:
    try:
        return from_json(text)
    except ValueError:
        return _NOTHING


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is not valid JSON")


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
