"""The work of checking values against a JSON Schema. A server supplies both schema and value, and even a small schema
can take forever.

    {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}, {"$ref": "#/$defs/b"}]}, "b": ...}}

Each definition of such a chain doubles the work, and so does each level of a value that is checked twice. The cost is
the number of schemas that are applied to a value with a given number of levels, if every schema that may be applied
is applied. A schema applies some schemas in place, to the same value (`$ref`, `anyOf`, ...), and others to the parts
of the value, one level below (`properties`, `items`, ...).
"""

from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote

MAX_SCHEMAS = 5_000
"""The maximum number of schemas in one schema. The largest known schemas contain a tenth of this."""
MAX_LEVELS = 64
"""The maximum depth of a value. Results of tools usually have only a few levels."""
MAX_PATTERNS = 100
"""The maximum number of patterns in one schema. Compiling each of them takes time and memory."""

_PART_KEYWORDS = frozenset(
    ("properties", "patternProperties", "additionalProperties", "unevaluatedProperties", "propertyNames")
) | frozenset(("items", "prefixItems", "additionalItems", "unevaluatedItems", "contains"))
_IN_PLACE_KEYWORDS = frozenset(
    ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies")
)
_KEYWORDS_BY_NAME = frozenset(("properties", "patternProperties", "dependentSchemas", "dependencies"))
_IGNORED_KEYWORDS = frozenset(("$defs", "definitions", "default", "examples"))
_UNSUPPORTED_KEYWORDS = ("$dynamicRef", "$recursiveRef")

Schema = dict[str, Any]


class UnusableSchema(ValueError):
    """Raised for a schema that can't be used: it is invalid, refers to other documents, or would take too long."""


class Cost:
    """The cost of one schema. Raises UnusableSchema if the cost is unbounded or unknown."""

    def __init__(self, schema: Schema) -> None:
        self._root = schema
        self._in_place_schemas: list[list[int]] = []
        self._part_schemas: list[list[int]] = []
        self._own_work: list[int] = []
        self.patterns = 0
        """The number of regular expressions."""
        self._read()
        self._order = self._sort()
        self._levels = [self._next_level([0] * len(self._order))]

    def max_applications(self, levels: int) -> int:
        """Return the maximum number of schemas that are applied to a value with `levels` levels below it and, at each
        level, one part. For each entry of a list in it, such as `enum`, a schema counts once more. Raises
        UnusableSchema for too many levels."""
        if levels > MAX_LEVELS:
            raise UnusableSchema(f"the value has more than {MAX_LEVELS} levels")
        while len(self._levels) <= levels:
            next_level = self._next_level(self._levels[-1])
            if next_level == self._levels[-1]:
                break
            self._levels.append(next_level)
        return self._levels[min(levels, len(self._levels) - 1)][0]

    def _next_level(self, part_work: list[int]) -> list[int]:
        """Return the work of each schema for a value, given the work of each schema for a part of the value."""
        work = [0] * len(self._in_place_schemas)
        for number in self._order:
            work[number] = self._own_work[number] + sum(work[other] for other in self._in_place_schemas[number])
            work[number] += sum(part_work[other] for other in self._part_schemas[number])
        return work

    def _read(self) -> None:
        """Number the schemas, beginning with the whole schema as 0, and record which schemas each of them applies."""
        schemas: list[Schema] = [self._root]
        numbers = {id(self._root): 0}
        for schema in schemas:
            self._in_place_schemas.append([])
            self._part_schemas.append([])
            applied = (_PART_KEYWORDS, _IN_PLACE_KEYWORDS, _IGNORED_KEYWORDS)
            own = (value for keyword, value in schema.items() if not any(keyword in keywords for keywords in applied))
            self._own_work.append(1 + sum(len(value) for value in own if isinstance(value, list | dict)))
            by_pattern = schema.get("patternProperties")
            self.patterns += ("pattern" in schema) + (len(by_pattern) if isinstance(by_pattern, dict) else 0)
            for is_part, other in _iter_applied(schema, self._root):
                if id(other) not in numbers:
                    numbers[id(other)] = len(schemas)
                    schemas.append(other)
                (self._part_schemas if is_part else self._in_place_schemas)[-1].append(numbers[id(other)])
            if len(schemas) > MAX_SCHEMAS or self.patterns > MAX_PATTERNS:
                raise UnusableSchema(f"it has more than {MAX_SCHEMAS} schemas or {MAX_PATTERNS} patterns")

    def _sort(self) -> list[int]:
        """Return the numbers of the schemas in an order in which each comes after those that it applies in place."""
        order: list[int] = []
        unsorted_counts = [len(others) for others in self._in_place_schemas]
        applying_schemas: list[list[int]] = [[] for _ in self._in_place_schemas]
        for number, others in enumerate(self._in_place_schemas):
            for other in others:
                applying_schemas[other].append(number)
        ready = [number for number, count in enumerate(unsorted_counts) if not count]
        while ready:
            number = ready.pop()
            order.append(number)
            for applying in applying_schemas[number]:
                unsorted_counts[applying] -= 1
                if not unsorted_counts[applying]:
                    ready.append(applying)
        if len(order) < len(unsorted_counts):
            raise UnusableSchema("it refers to itself endlessly")
        return order


def _iter_applied(schema: Schema, root: Schema) -> Iterator[tuple[bool, Schema]]:
    """Iterate over the schemas that `schema` applies, each with True if it is applied to parts of the value, and with
    False if it is applied in place."""
    for keyword, value in schema.items():
        if keyword == "$ref":
            yield False, _resolve(value, root)
        elif keyword in _UNSUPPORTED_KEYWORDS or (keyword == "$id" and schema is not root):
            raise UnusableSchema(f"it has {keyword}, which is not supported")
        elif keyword in _PART_KEYWORDS or keyword in _IN_PLACE_KEYWORDS:
            parts: Iterable[object] = value if isinstance(value, list) else (value,)
            if isinstance(value, dict) and keyword in _KEYWORDS_BY_NAME:
                parts = value.values()
            yield from ((keyword in _PART_KEYWORDS, part) for part in parts if isinstance(part, dict))


def _resolve(reference: object, root: Schema) -> Schema:
    """Return the schema at a reference into the same document."""
    target: Any = root
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        raise UnusableSchema("it refers to another schema, which is not fetched")
    for part in reference[1:].split("/")[1:]:
        name = unquote(part).replace("~1", "/").replace("~0", "~")
        try:
            target = target[int(name) if isinstance(target, list) else name]
        except (KeyError, IndexError, TypeError, ValueError):
            target = None
    if not isinstance(target, dict | bool):
        raise UnusableSchema("it refers to a schema that does not exist")
    return target if isinstance(target, dict) else {}
