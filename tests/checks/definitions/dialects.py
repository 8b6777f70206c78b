"""What becomes of a JSON Schema in the dialects of others: a table for each, and what a translation has lost."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

_STRUCTURE = {"$ref", "$defs", "properties", "items", "anyOf", "required"}
"""Keywords that `losses` follows by itself."""
_PLAIN = ("type", "description", "default", "enum", "minimum", "maximum", "pattern", "x-mcp-header")
_SIZES = {"minLength": "min_length", "maxLength": "max_length", "minItems": "min_items", "maxItems": "max_items"}
_AS_THEY_ARE = {keyword: keyword for keyword in (*_PLAIN, *_SIZES)}
_GEMINI = {keyword: keyword for keyword in _PLAIN}

DIALECTS: dict[str, Mapping[str, str | None]] = {
    "openai": _AS_THEY_ARE,
    "gemini-cli": _AS_THEY_ARE,
    "adk": {**_GEMINI, **_SIZES, "x-mcp-header": None},
    # Its filter looks for the sizes under their names in Python, and passes over those in JSON Schema.
    "genai": {**_GEMINI, **dict.fromkeys(_SIZES), "x-mcp-header": None},
}
"""For each converter the keywords that our schemas may have, and what they are called afterwards; None where it has
no place for them."""


def losses(schema: Json, made: Json, dialect: Mapping[str, str | None]) -> list[str]:
    """What `made`, the arguments of a tool in a dialect, has lost of `schema`: where, and what."""
    return list(_Comparison(schema, made, dialect).of(schema, made, ""))


@dataclass(frozen=True)
class _Comparison:
    """Two documents, in which references are looked up, and the dialect of the second."""

    schema: Json
    made: Json
    dialect: Mapping[str, str | None]

    def of(self, schema: Json, made: Json, where: str) -> Iterator[str]:
        """What is lost at `where`, and below it."""
        schema, made = _resolved(schema, self.schema), _resolved(made, self.made)
        if _is_free(schema, where):
            yield f"{where}: may be anything, which nobody can convey"
        yield from self._keywords(schema, made, where)
        yield from self._properties(schema, made, where)
        if "items" in schema:
            yield from self.of(schema["items"], made.get("items", {}), f"{where}[]")
        before, after = schema.get("anyOf", []), made.get("anyOf", made.get("any_of", []))
        if len(before) != len(after):
            yield f"{where}: {len(before)} alternatives are {len(after)}"
        for number, (one, other) in enumerate(zip(before, after, strict=False)):
            yield from self.of(one, other, f"{where}|{number}")

    def _keywords(self, schema: Json, made: Json, where: str) -> Iterator[str]:
        for keyword in schema.keys() - _STRUCTURE:
            name = self.dialect.get(keyword, keyword)
            if keyword not in self.dialect:
                yield f"{where}: no table has {keyword}"
            elif name is not None and not _same(schema[keyword], made.get(name)):
                yield f"{where}: {keyword} was {schema[keyword]!r} and is {made.get(name)!r}"

    def _properties(self, schema: Json, made: Json, where: str) -> Iterator[str]:
        kept = made.get("properties", {})
        for name, inner in schema.get("properties", {}).items():
            if name in kept:
                yield from self.of(inner, kept[name], f"{where}.{name}")
            else:
                yield f"{where}.{name}: is gone"
        for name in set(schema.get("required", [])) - set(made.get("required", [])):
            yield f"{where}.{name}: is no longer required"


def _is_free(schema: Json, where: str) -> bool:
    """Whether values are not described: of no type, an object of any names, a list of anything. A tool may have no
    arguments, though."""
    match schema.get("type"):
        case "object":
            return bool(where) and not schema.get("properties")
        case "array":
            return not schema.get("items")
        case kind:
            return not isinstance(kind, str) and not schema.get("anyOf")


def _same(before: Any, after: Any) -> bool:
    # Gemini's types are in capitals.
    return bool(before == (after.lower() if isinstance(after, str) and after.isupper() else after))


def _resolved(node: Json, document: Json) -> Json:
    reference = node.get("$ref")
    return node if reference is None else document["$defs"][reference.removeprefix("#/$defs/")]
