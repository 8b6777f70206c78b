"""The work that a JSON Schema can cause. A server supplies both schema and value, and even a small schema can take
forever.

    {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}, {"$ref": "#/$defs/b"}]}, "b": ...}}

Each definition of such a chain doubles the work, and so does each level of a value that is checked twice. The cost is
the number of schemas that may be applied to a value with a given number of levels, assuming that each of them always
is: `$ref` is followed, schemas in place are applied to the same level, and schemas of parts to the next.
"""

from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote

MAX_SCHEMAS = 5_000
"""The maximum number of schemas in one schema. The largest schemas of known servers contain a tenth of that."""
MAX_LEVELS = 64
"""The maximum depth of a value. Results of tools have a few levels."""
MAX_PATTERNS = 100
"""The maximum patterns in one schema: each takes time and memory to compile."""

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
    """Raised for a schema that is unusable for checks: it is invalid, refers to other documents, or would take too
    long."""


class Cost:
    """The work of one schema. Raises UnusableSchema if the work is unbounded or unknown."""

    def __init__(self, schema: Schema) -> None:
        self._root = schema
        self._in_place: list[list[int]] = []
        self._of_parts: list[list[int]] = []
        self._own: list[int] = []
        self.patterns = 0
        """The number of regular expressions."""
        self._read()
        self._order = self._sort()
        self._levels = [self._next_level([0] * len(self._order))]

    def max_applications(self, levels: int) -> int:
        """Return the maximum number of schemas applied to a value with `levels` below it, and to one part of each
        level. A schema with a list of names or values counts as many times. Raises UnusableSchema for too many
        levels."""
        if levels > MAX_LEVELS:
            raise UnusableSchema(f"the value has more than {MAX_LEVELS} levels")
        while len(self._levels) <= levels:
            deeper = self._next_level(self._levels[-1])
            if deeper == self._levels[-1]:
                break
            self._levels.append(deeper)
        return self._levels[min(levels, len(self._levels) - 1)][0]

    def _next_level(self, part_work: list[int]) -> list[int]:
        work = [0] * len(self._in_place)
        for number in self._order:
            work[number] = self._own[number] + sum(work[other] for other in self._in_place[number])
            work[number] += sum(part_work[other] for other in self._of_parts[number])
        return work

    def _read(self) -> None:
        """Number the schemas, the whole being 0, and record which schemas each one applies."""
        schemas: list[Schema] = [self._root]
        numbers = {id(self._root): 0}
        for schema in schemas:
            self._in_place.append([])
            self._of_parts.append([])
            applied = (_PART_KEYWORDS, _IN_PLACE_KEYWORDS, _IGNORED_KEYWORDS)
            own = (value for keyword, value in schema.items() if not any(keyword in keywords for keywords in applied))
            self._own.append(1 + sum(len(value) for value in own if isinstance(value, list | dict)))
            by_pattern = schema.get("patternProperties")
            self.patterns += ("pattern" in schema) + (len(by_pattern) if isinstance(by_pattern, dict) else 0)
            for is_part, other in _iter_applied(schema, self._root):
                if id(other) not in numbers:
                    numbers[id(other)] = len(schemas)
                    schemas.append(other)
                (self._of_parts if is_part else self._in_place)[-1].append(numbers[id(other)])
            if len(schemas) > MAX_SCHEMAS or self.patterns > MAX_PATTERNS:
                raise UnusableSchema(f"it has more than {MAX_SCHEMAS} schemas or {MAX_PATTERNS} patterns")

    def _sort(self) -> list[int]:
        """Return the schemas in an order in which each follows those that it applies in place."""
        order: list[int] = []
        waits = [len(others) for others in self._in_place]
        users: list[list[int]] = [[] for _ in self._in_place]
        for number, others in enumerate(self._in_place):
            for other in others:
                users[other].append(number)
        ready = [number for number, count in enumerate(waits) if not count]
        while ready:
            number = ready.pop()
            order.append(number)
            for user in users[number]:
                waits[user] -= 1
                if not waits[user]:
                    ready.append(user)
        if len(order) < len(waits):
            raise UnusableSchema("it refers to itself endlessly")
        return order


def _iter_applied(schema: Schema, root: Schema) -> Iterator[tuple[bool, Schema]]:
    """Iterate over the schemas that `schema` applies, each with True if it applies to parts of the value."""
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
