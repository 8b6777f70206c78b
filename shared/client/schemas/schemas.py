"""JSON Schemas that a server wrote, and values checked against them, within limits.

A stranger's schema may be wrong, refer to what must not be fetched, or be made to take for ever; and while the
library works, nothing else does. Nothing is checked against such a one: that is no fault of the value. Without
`$schema` it is one of 2020-12 (2026-07-28, Tools).
"""

from dataclasses import dataclass
from typing import Any

from .schema_cost import MAX_LEVELS, Cost, UnusableSchema

MAX_VALUES = 200_000
"""Of which one value is made; to count them takes a tenth of a second."""
MAX_WORK = 5_000_000
"""Values, times the schemas that may be applied to each: a tenth of a second."""
MAX_EXPLAINED = 200_000
"""The same, where it is said what is wrong: that takes more time, and memory."""
MAX_STEPS_BACK = 10_000
MAX_TEXT = 200


@dataclass(frozen=True, slots=True)
class _Engine:
    """A way to search for patterns: those of up to so many `bytes`, once compiled, take time for each character, and
    where they look ahead or behind for each two; times the schemas that may be applied there are at most so many."""

    bytes: int
    looks_around: bool
    searched: int


_ENGINES = (
    _Engine(1 << 14, False, 500_000),
    _Engine(1 << 16, False, 30_000),
    _Engine(1 << 19, False, 4_000),
    _Engine(1 << 14, True, 1_000_000),
)


def load_library() -> Any:
    """`jsonschema_rs`. Raises ModuleNotFoundError where the extra `client` is not installed."""
    import jsonschema_rs

    return jsonschema_rs


class CheckedSchema:
    """A schema to check values against. That of a `form` has `format` checked as well, which is else a remark, and
    what a person typed is not repeated where it is wrong.

    Raises UnusableSchema.
    """

    def __init__(self, schema: dict[str, Any], *, form: bool = False) -> None:
        self._cost = Cost(schema)
        try:
            self._library = load_library()
        except ModuleNotFoundError:
            raise UnusableSchema("the extra `client` is not installed") from None
        self._engine, self._validator = self._compiled(schema, form)

    def _compiled(self, schema: dict[str, Any], form: bool) -> tuple[_Engine, Any]:
        reason = ""
        # The cheapest that takes its patterns: what looks around backtracks, and may take time without end.
        for engine in _ENGINES if self._cost.patterns else _ENGINES[:1]:
            # Offline: a `$ref` to a URL would have us fetch what a stranger names (2026-07-28 forbids it).
            options = {"validate_formats": form, "mask": "the value" if form else None, "offline": True}
            try:
                patterns = self._patterns(engine)
                return engine, self._library.validator_for(schema, pattern_options=patterns, **options)
            except (ValueError, self._library.ReferencingError) as error:
                reason = _short(error)
        raise UnusableSchema(reason)

    def _patterns(self, engine: _Engine) -> Any:
        sizes = {"size_limit": engine.bytes, "dfa_size_limit": engine.bytes}
        if engine.looks_around:
            return self._library.FancyRegexOptions(backtrack_limit=MAX_STEPS_BACK, **sizes)
        return self._library.RegexOptions(**sizes)

    def fault(self, value: object) -> tuple[list[str], str] | None:
        """Where `value` breaks the schema first, and how; None where it does not.

        Raises UnusableSchema where it would take too long to find out.
        """
        size = _size_of(value)
        cost = self._cost.at(size.levels)
        searched = size.squares if self._engine.looks_around else size.characters
        is_searched = self._cost.patterns > 0
        is_large = size.count > MAX_VALUES or cost * size.count > MAX_WORK
        if is_large or (is_searched and cost * searched > self._engine.searched):
            raise UnusableSchema("it would take too long")
        try:
            # First without saying why: most values fit, and an explanation takes more time and memory.
            if self._validator.is_valid(value):
                return None
            if cost * size.count <= MAX_EXPLAINED:
                self._validator.validate(value)
        except self._library.ValidationError as error:
            kinds = self._library.ValidationErrorKind
            if isinstance(error.kind, kinds.BacktrackLimitExceeded | kinds.RegexEngineFailure):
                raise UnusableSchema("a pattern would take too long") from None
            return [str(part) for part in error.instance_path], _short(error)
        except ValueError as error:  # it is no JSON
            return [], _short(error)
        if self._engine.looks_around:
            raise UnusableSchema("the value breaks it, or a pattern took too long: which is not known")
        return [], "it breaks the schema"


def _short(error: Any) -> str:
    text = str(getattr(error, "message", error))
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"


@dataclass(slots=True)
class _Size:
    """How many values one is made of, the levels of them beneath it, and the lengths of the texts and names in it:
    their sum, and that of their squares."""

    count: int = 0
    levels: int = -1
    characters: int = 0
    squares: int = 0


def _size_of(value: object) -> _Size:
    size, level = _Size(), [value]
    while level and size.levels <= MAX_LEVELS:
        size.count += len(level)
        size.levels += 1
        texts = [len(one) for one in level if isinstance(one, str)]
        beneath: list[object] = []
        for one in level:
            # A value that is too large, or holds itself, is not measured to its end.
            if size.count + len(beneath) > MAX_VALUES:
                return _Size(count=MAX_VALUES + 1)
            if isinstance(one, dict):
                texts += [len(name) for name in one if isinstance(name, str)]
                beneath += one.values()
            elif isinstance(one, list | tuple):
                beneath += one
        size.characters += sum(texts)
        size.squares += sum(length * length for length in texts)
        level = beneath
    return size
