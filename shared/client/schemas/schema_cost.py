"""How much work a JSON Schema can make of a value: a server writes both, and small schemas can take for ever.

    {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}, {"$ref": "#/$defs/b"}]}, "b": ...}}

Each definition of such a chain doubles the work, and so does each level of a value that is looked at twice. Counted
is how many schemas may be applied to a value with so many levels, as if each one always were: `$ref` is followed,
schemas in place are applied to the same level, and those of parts to the next.
"""

from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote

MAX_SCHEMAS = 5_000
"""Schemas in one schema. The largest that known servers publish have a tenth of that."""
MAX_LEVELS = 64
"""Of a value. Results of tools have a few."""
MAX_PATTERNS = 100
"""In one schema: each takes a while to compile, and memory."""

_OF_PARTS = frozenset(
    ("properties", "patternProperties", "additionalProperties", "unevaluatedProperties", "propertyNames")
) | frozenset(("items", "prefixItems", "additionalItems", "unevaluatedItems", "contains"))
_IN_PLACE = frozenset(("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"))
_BY_NAME = frozenset(("properties", "patternProperties", "dependentSchemas", "dependencies"))
_NOT_APPLIED = frozenset(("$defs", "definitions", "default", "examples"))
_ELSEWHERE = ("$dynamicRef", "$recursiveRef")

Schema = dict[str, Any]


class UnusableSchema(ValueError):
    """A schema that nothing is checked against: it is wrong, refers to others, or would take too long."""


class Cost:
    """The work of one schema. Raises UnusableSchema where it has no bound, or can't be found."""

    def __init__(self, schema: Schema) -> None:
        self._root = schema
        self._in_place: list[list[int]] = []
        self._of_parts: list[list[int]] = []
        self._own: list[int] = []
        self.patterns = 0
        """How many regular expressions there are."""
        self._read()
        self._order = self._in_order()
        self._levels = [self._next([0] * len(self._order))]

    def at(self, levels: int) -> int:
        """How many schemas may be applied to a value with so many `levels` beneath it, and to one part of each level,
        at most; one with a list of names or values counts for as many. Raises UnusableSchema for too many levels."""
        if levels > MAX_LEVELS:
            raise UnusableSchema(f"the value has more than {MAX_LEVELS} levels")
        while len(self._levels) <= levels:
            deeper = self._next(self._levels[-1])
            if deeper == self._levels[-1]:
                break
            self._levels.append(deeper)
        return self._levels[min(levels, len(self._levels) - 1)][0]

    def _next(self, beneath: list[int]) -> list[int]:
        work = [0] * len(self._in_place)
        for one in self._order:
            work[one] = self._own[one] + sum(work[other] for other in self._in_place[one])
            work[one] += sum(beneath[other] for other in self._of_parts[one])
        return work

    def _read(self) -> None:
        """Numbers the schemas, the whole being 0, and notes which ones each applies."""
        found: list[Schema] = [self._root]
        numbers = {id(self._root): 0}
        for schema in found:
            self._in_place.append([])
            self._of_parts.append([])
            applied = (_OF_PARTS, _IN_PLACE, _NOT_APPLIED)
            own = (value for keyword, value in schema.items() if not any(keyword in some for some in applied))
            self._own.append(1 + sum(len(value) for value in own if isinstance(value, list | dict)))
            by_pattern = schema.get("patternProperties")
            self.patterns += ("pattern" in schema) + (len(by_pattern) if isinstance(by_pattern, dict) else 0)
            for is_part, other in _applied(schema, self._root):
                if id(other) not in numbers:
                    numbers[id(other)] = len(found)
                    found.append(other)
                (self._of_parts if is_part else self._in_place)[-1].append(numbers[id(other)])
            if len(found) > MAX_SCHEMAS or self.patterns > MAX_PATTERNS:
                raise UnusableSchema(f"it has more than {MAX_SCHEMAS} schemas or {MAX_PATTERNS} patterns")

    def _in_order(self) -> list[int]:
        """The schemas, each one after those that it applies in place."""
        order: list[int] = []
        waits = [len(others) for others in self._in_place]
        users: list[list[int]] = [[] for _ in self._in_place]
        for one, others in enumerate(self._in_place):
            for other in others:
                users[other].append(one)
        ready = [one for one, count in enumerate(waits) if not count]
        while ready:
            one = ready.pop()
            order.append(one)
            for user in users[one]:
                waits[user] -= 1
                if not waits[user]:
                    ready.append(user)
        if len(order) < len(waits):
            raise UnusableSchema("it refers to itself without end")
        return order


def _applied(schema: Schema, root: Schema) -> Iterator[tuple[bool, Schema]]:
    """The schemas that `schema` applies, and whether to parts of the value."""
    for keyword, value in schema.items():
        if keyword == "$ref":
            yield False, _referred(value, root)
        elif keyword in _ELSEWHERE or (keyword == "$id" and schema is not root):
            raise UnusableSchema(f"it has {keyword}, which is not followed")
        elif keyword in _OF_PARTS or keyword in _IN_PLACE:
            yield from ((keyword in _OF_PARTS, one) for one in _schemas(keyword, value))


def _schemas(keyword: str, value: object) -> Iterator[Schema]:
    several: Iterable[object] = value if isinstance(value, list) else (value,)
    if isinstance(value, dict) and keyword in _BY_NAME:
        several = value.values()
    return (one for one in several if isinstance(one, dict))


def _referred(reference: object, root: Schema) -> Schema:
    """What stands at a reference into the same schema."""
    place: Any = root
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        raise UnusableSchema("it refers to another schema, and none is fetched")
    for part in reference[1:].split("/")[1:]:
        name = unquote(part).replace("~1", "/").replace("~0", "~")
        try:
            place = place[int(name) if isinstance(place, list) else name]
        except (KeyError, IndexError, TypeError, ValueError):
            place = None
    if not isinstance(place, dict | bool):
        raise UnusableSchema("it refers to what is not there")
    return place if isinstance(place, dict) else {}
