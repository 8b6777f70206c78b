"""Matches globs against relative paths, in linear time.

A pattern is split at `/` into components. `**` matches any number of directories. Every other component is a glob for
one name: `*`, `?`, `[abc]`, `[!abc]`, `[^abc]`, or a backslash before a literal character. Case counts, and hidden
names match. `fnmatch` translates each component once; its regular expressions match each `*` atomically, so they
never backtrack exponentially. As in git, a component also matches the name that equals it literally, such as
`[id].tsx`. An accented letter matches whether it is one character or two, since macOS writes names in another form
than models (Unicode TR 15). Alternatives `{a,b}` are expanded first, up to a limit.

Matching carries a set of states from component to component, as in a finite automaton. A search passes the states
down the tree, so that a name is matched once per state. A directory after which there are no states need not be
visited.

A pattern without `/` matches the last name at any depth.
"""

import fnmatch
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile

from shared.coded_errors import PathError
from shared.text import quote_name

MAX_ALTERNATIVES = 64
"""Maximum number of patterns that `{a,b}` groups may expand to."""
MAX_LENGTH = 1_024
"""Maximum length of a pattern, before and after expansion, in characters."""

States = frozenset[tuple[int, int]]
"""The states after some components: each is the index of an alternative, and how many of its components have
matched."""

_GROUP = re.compile(r"\{([^{}]*)\}")
_ESCAPED_BRACE = re.compile(r"\\([\\{},])")
_PLACEHOLDERS = {"{": "\0<", "}": "\0>", ",": "\0;", "\\": "\\\\"}
"""What replaces a character after a backslash while groups are expanded."""
_ESCAPE = re.compile(r"\[[!^]?\]?(?:\\.|[^\]\\])*\]|\\(.)", re.DOTALL)
"""Matches a set of characters, or a character that a backslash makes literal."""
_ANY_DIRECTORIES = None
"""The component `**`, which matches any number of directories."""
_STAR = re.compile(fnmatch.translate("*"))


class Glob:
    """Matches paths against one or more patterns. Raises `PathError` with code `bad_pattern` for an invalid one."""

    def __init__(self, patterns: Iterable[str]) -> None:
        expanded = [variant for pattern in patterns for variant in _expand(pattern)]
        if len(expanded) > MAX_ALTERNATIVES:
            raise _bad_pattern("", f"the patterns expand to more than {MAX_ALTERNATIVES} alternatives")
        self._rows: list[list[re.Pattern[str] | _ComposedPattern | None]] = []
        for pattern in dict.fromkeys(expanded):
            names = _split(pattern)
            names = [name for i, name in enumerate(names) if names[i : i + 2] != ["**", "**"]]
            self._rows.append([_ANY_DIRECTORIES if name == "**" else _compile_component(name) for name in names])
        self.start: States = self._skip_stars({(row, 0) for row in range(len(self._rows))})
        self._matchers: dict[States, tuple[Callable[[str], object], ...]] = {}

    def step(self, states: States, name: str) -> States:
        """Return the states after one more component `name`."""
        after: set[tuple[int, int]] = set()
        for row, matched in states:
            components = self._rows[row]
            if matched == len(components):
                continue
            component = components[matched]
            if component is _ANY_DIRECTORIES:
                after.add((row, matched))
            elif component.match(name):
                after.add((row, matched + 1))
        return self._skip_stars(after)

    def matches_after(self, states: States, name: str) -> bool:
        """Return True if the path matches with one more component `name`. This is a faster `accepts(step(...))`."""
        matchers = self._matchers.get(states)
        if matchers is None:
            rows = ((self._rows[row], matched) for row, matched in states)
            last = (row[matched] for row, matched in rows if matched == len(row) - 1)
            matchers = self._matchers[states] = tuple(
                pattern.match for pattern in last if pattern is not _ANY_DIRECTORIES
            )
        for match in matchers:  # noqa: SIM110 - a generator here takes as long as the rest
            if match(name):
                return True
        return False

    def matches_after_any(self, states: States) -> bool:
        """Return True if the path matches with one more component, whatever its name."""
        rows = ((self._rows[row], matched) for row, matched in states)
        return any(matched == len(row) - 1 and row[matched] is _STAR for row, matched in rows)

    def accepts(self, states: States) -> bool:
        """Return True if the components so far match."""
        return any(matched == len(self._rows[row]) for row, matched in states)

    def can_match_below(self, states: States) -> bool:
        """Return True if anything below the components so far can match."""
        return any(matched < len(self._rows[row]) for row, matched in states)

    def matches(self, parts: Sequence[str]) -> bool:
        """Return True if the relative path with these components matches."""
        return self.accepts(self.states_after(parts))

    def states_after(self, parts: Sequence[str]) -> States:
        """Return the states after these components."""
        states = self.start
        for part in parts:
            states = self.step(states, part)
        return states

    def _skip_stars(self, states: set[tuple[int, int]]) -> States:
        for row, matched in tuple(states):
            components = self._rows[row]
            if matched < len(components) and components[matched] is _ANY_DIRECTORIES:
                states.add((row, matched + 1))
        return frozenset(states)


def reachable_patterns(pattern: str) -> tuple[str, ...]:
    """Return wider patterns, which match everything in the directories that may contain a match of `pattern`. Raises
    PathError with code `bad_pattern`."""
    patterns = set()
    for variant in _expand(pattern):
        # Replace the last name, and all names after a `**`, by `*`, so that many patterns have the same result.
        directories = _split(variant)[:-1]
        before = tuple(takewhile(lambda name: name != "**", directories))
        patterns.add("/".join((".", *before, *directories[len(before) : len(before) + 1], "*")))
    return tuple(sorted(patterns))


def _bad_pattern(pattern: str, reason: str) -> PathError:
    shown = f"pattern {quote_name(pattern[:80])}: " if pattern else ""
    return PathError("bad_pattern", "", shown + reason, "Use a simpler glob, such as **/*.py.")


def _expand(pattern: str) -> list[str]:
    """Return `pattern` with its `{a,b}` groups expanded, innermost first."""
    if not pattern or len(pattern) > MAX_LENGTH or "\0" in pattern:
        raise _bad_pattern(pattern, f"a pattern must have 1 to {MAX_LENGTH} characters, none of them NUL")
    pending, finished = [_ESCAPED_BRACE.sub(lambda match: _PLACEHOLDERS[match[1]], pattern)], []
    while pending:
        current = pending.pop()
        group = _GROUP.search(current)
        if group is None:
            finished.append(current.replace("\0<", "{").replace("\0>", "}").replace("\0;", ","))
        else:
            before, after = current[: group.start()], current[group.end() :]
            choices = group[1].split(",")
            if len(choices) == 1:
                # As in shells, braces without a comma are plain characters.
                choices = [f"\0<{choices[0]}\0>"]
            if len(choices) > MAX_ALTERNATIVES:
                raise _bad_pattern(current, f"it expands to more than {MAX_ALTERNATIVES} patterns")
            pending += [before + choice + after for choice in choices]
        if len(pending) + len(finished) > MAX_ALTERNATIVES:
            raise _bad_pattern(pattern, f"it expands to more than {MAX_ALTERNATIVES} patterns")
    return finished


def _split(pattern: str) -> list[str]:
    """Return the components of a pattern without groups. A pattern without a slash gets a `**` before it."""
    names = [name for name in pattern.split("/") if name not in ("", ".")]
    if not names or pattern.startswith("/") or ".." in names:
        raise _bad_pattern(pattern, "a pattern must be relative to the starting directory, without '..'")
    if "/" not in pattern.rstrip("/"):
        names.insert(0, "**")
    if names[-1] == "**":
        names.append("*")
    return names


class _ComposedPattern:
    """A component with composed accents. It also matches names with decomposed ones."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern

    def match(self, name: str) -> re.Match[str] | None:
        return self._pattern.match(_compose(name))


def _compose(name: str) -> str:
    from unicodedata import normalize

    return normalize("NFC", name)


def _compile_component(name: str) -> re.Pattern[str] | _ComposedPattern:
    if name == "*":
        return _STAR
    # Check this before the normalization, which replaces a few other characters by ASCII ones.
    is_ascii = name.isascii()
    name = name if is_ascii else _compose(name)
    translated = fnmatch.translate(_ESCAPE.sub(_translate_part, name))
    is_plain = "[" not in name and "\\" not in name
    pattern = re.compile(translated if is_plain else rf"{translated}|{re.escape(name)}\Z")
    return pattern if is_ascii else _ComposedPattern(pattern)


def _translate_part(match: re.Match[str]) -> str:
    """Return a set of characters, or a literal character, as `fnmatch` writes it."""
    if match[1] is not None:
        return f"[{match[1]}]" if match[1] in "*?[" else match[1]
    bracketed = match[0]
    mark = "!" if bracketed[1] in "!^" else ""
    content = bracketed[1 + len(mark) : -1]
    # In the sets of `fnmatch`, a bracket is literal if it is first, and `!` and `-` are if they are last.
    last = "".join(char for char in "!-" if f"\\{char}" in content)
    members = re.sub(r"\\(.)", lambda escaped: "" if escaped[1] in "!-" else escaped[1], content, flags=re.DOTALL)
    first = "]" if "]" in members else ""
    characters = first + members.replace("]", "") + last
    return characters if characters == "!" else f"[{mark}{characters}]"
