"""JSON Schemas from a server, and checks of values against them, within limits.

An untrusted schema may be invalid, refer to documents that must not be fetched, or be designed to take forever, and
the library blocks the event loop while it checks a value. Values are not checked against such a schema, and pass: the
fault is not theirs. A schema without `$schema` is one of 2020-12 (2026-07-28, Tools).
"""

from dataclasses import dataclass
from typing import Any

from .schema_cost import MAX_LEVELS, Cost, UnusableSchema

MAX_VALUES = 200_000
"""The maximum number of values inside a checked value; counting so many takes a tenth of a second."""
MAX_WORK = 5_000_000
"""The maximum product of the number of values and the number of schemas that may be applied to each of them. So much
work takes a tenth of a second."""
MAX_EXPLAINED_WORK = 200_000
"""The maximum of the same product for explaining an error, which takes more time and memory."""
MAX_BACKTRACKS = 10_000
"""The maximum number of steps back in a search with lookaround. So many take a millisecond."""
MAX_EXPLANATION_LENGTH = 200
"""The maximum number of characters of an explanation."""


@dataclass(frozen=True, slots=True)
class _Engine:
    """An engine for regular expressions, each of which may take up to `max_pattern_bytes` when it is compiled. The
    time of a search grows with the number of characters, or with its square if the engine supports lookaround. This
    number, multiplied by the number of schemas that may be applied, may be at most `max_searched`."""

    max_pattern_bytes: int
    supports_lookaround: bool
    max_searched: int


_ENGINES = (
    _Engine(1 << 14, False, 500_000),
    _Engine(1 << 16, False, 30_000),
    _Engine(1 << 19, False, 4_000),
    _Engine(1 << 14, True, 1_000_000),
)


def load_library() -> Any:
    """Import `jsonschema_rs`. Raises ModuleNotFoundError if the extra `client` is not installed."""
    import jsonschema_rs

    return jsonschema_rs


class CheckedSchema:
    """A schema to check values against. A `form` schema also checks `format`, which is otherwise only an annotation,
    and its errors do not repeat the user's input.

    Raises UnusableSchema.
    """

    def __init__(self, schema: dict[str, Any], *, form: bool = False) -> None:
        self._cost = Cost(schema)
        try:
            self._library = load_library()
        except ModuleNotFoundError:
            raise UnusableSchema("the extra `client` is not installed") from None
        self._engine, self._validator = self._compile(schema, form)

    def _compile(self, schema: dict[str, Any], form: bool) -> tuple[_Engine, Any]:
        reason = ""
        # Use the cheapest engine that supports the patterns. The engine with lookaround is the last one, because it
        # backtracks, and may take very long.
        for engine in _ENGINES if self._cost.patterns else _ENGINES[:1]:
            # `offline`, because a `$ref` to a URL would otherwise fetch an untrusted document, which 2026-07-28
            # forbids.
            options = {"validate_formats": form, "mask": "the value" if form else None, "offline": True}
            try:
                sizes = {"size_limit": engine.max_pattern_bytes, "dfa_size_limit": engine.max_pattern_bytes}
                patterns: Any = (
                    self._library.FancyRegexOptions(backtrack_limit=MAX_BACKTRACKS, **sizes)
                    if engine.supports_lookaround
                    else self._library.RegexOptions(**sizes)
                )
                return engine, self._library.validator_for(schema, pattern_options=patterns, **options)
            except (ValueError, self._library.ReferencingError) as error:
                reason = _shorten(error)
        raise UnusableSchema(reason)

    def find_error(self, value: object) -> tuple[list[str], str] | None:
        """Return the path and the text of the first error of `value`; None if it is valid.

        Raises UnusableSchema if the check would take too long.
        """
        size = _measure(value)
        cost = self._cost.max_applications(size.levels)
        searched = size.squares if self._engine.supports_lookaround else size.characters
        has_patterns = self._cost.patterns > 0
        is_large = size.count > MAX_VALUES or cost * size.count > MAX_WORK
        if is_large or (has_patterns and cost * searched > self._engine.max_searched):
            raise UnusableSchema("it would take too long")
        try:
            # The first check gives no explanation: most values are valid, and an explanation takes more time and
            # memory.
            if self._validator.is_valid(value):
                return None
            if cost * size.count <= MAX_EXPLAINED_WORK:
                self._validator.validate(value)
        except self._library.ValidationError as error:
            kinds = self._library.ValidationErrorKind
            if isinstance(error.kind, kinds.BacktrackLimitExceeded | kinds.RegexEngineFailure):
                raise UnusableSchema("a regular expression in the schema takes too long to match") from None
            return [str(part) for part in error.instance_path], _shorten(error)
        except ValueError as error:  # it is not JSON
            return [], _shorten(error)
        if self._engine.supports_lookaround:
            raise UnusableSchema("either the value violates the schema, or a pattern took too long")
        return [], "it violates the schema"


def _shorten(error: Any) -> str:
    text = str(getattr(error, "message", error))
    return text if len(text) <= MAX_EXPLANATION_LENGTH else f"{text[:MAX_EXPLANATION_LENGTH]}…"


@dataclass(slots=True)
class _Size:
    """The size of a JSON value: how many values it contains, its depth, and the sum and sum of squares of its string
    lengths."""

    count: int = 0
    levels: int = -1
    characters: int = 0
    squares: int = 0


def _measure(value: object) -> _Size:
    size, level = _Size(), [value]
    while level and size.levels <= MAX_LEVELS:
        size.count += len(level)
        size.levels += 1
        texts = [len(item) for item in level if isinstance(item, str)]
        children: list[object] = []
        for item in level:
            # Measuring stops at a value that is too large, which includes values that contain themselves.
            if size.count + len(children) > MAX_VALUES:
                return _Size(count=MAX_VALUES + 1)
            if isinstance(item, dict):
                texts += [len(name) for name in item if isinstance(name, str)]
                children += item.values()
            elif isinstance(item, list | tuple):
                children += item
        size.characters += sum(texts)
        size.squares += sum(length * length for length in texts)
        level = children
    return size
