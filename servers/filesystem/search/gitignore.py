"""The rules of `.gitignore` files, which exclude build products, dependencies and caches.

As in git, each file applies to its directory and everything below, the innermost file with a matching rule decides,
the contents of an ignored directory are ignored too, and outer rules don't apply inside a nested repository. Unlike
git, this requires no repository. Anyone may have written the files, so their size is limited, and a linear-time
engine matches them.
"""

import os
import re
import warnings
from codecs import BOM_UTF8
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from servers.common.files.rooted_files import RootedFiles
from shared.program.files.entries import Place

from ..errors import FilesError
from .matcher import Matcher, compile_any

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


FILE = ".gitignore"
GIT_DIRECTORY = ".git"
MAX_BYTES = 65_536
"""Maximum number of bytes of a `.gitignore` that are read; the rest is ignored."""
_NAMED_GROUP = re.compile(r"\(\?P<\w+>")
_BRACKETS = re.compile(r"\\.|\[[!^]?\]?(?:\[:\w*:\]|\\.|[^\]\\])*\]")
"""An escaped character, or a set of characters, which may contain named classes."""
_CLASS = re.compile(r"\[:(\w*):\]")
_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": " \t",
    "digit": "0-9",
    "lower": "a-z",
    "space": " \t\n\r\f\v",
    "upper": "A-Z",
    "xdigit": "a-fA-F0-9",
}
"""The named classes of POSIX that `.gitignore` files use. The library pathspec does not support them."""
_MAX_LINE_CHARACTERS = 1_000
"""Maximum length of a line with named classes, since the search for its sets is quadratic."""
_BATCH_LINES = 100
"""Number of lines compiled into one automaton. The engine rejects automata that are too large."""


class _Spec(NamedTuple):
    """The rules of some lines. `ignored` is one expression that matches every path that any of these lines ignores;
    None if the engine rejects the expression."""

    rules: "GitIgnoreSpec"
    ignored: Matcher | None


class Rules(NamedTuple):
    """The rules in effect in one directory: for this directory and each above it that has rules, the rules, and the
    path of this directory relative to it."""

    levels: tuple[tuple[_Spec, str], ...] = ()

    def may_ignore(self, entries: Sequence[tuple[str, str]]) -> bool:
        """Return False if no entry of this directory is ignored. This takes only one search for each level. `entries`
        are names and kinds."""
        if not self.levels:
            return False
        names = [f"{name}/" if kind == "directory" else name for name, kind in entries]
        for spec, prefix in self.levels:
            paths = prefix + f"\n{prefix}".join(names)
            if spec.ignored is None or paths.count("\n") >= len(names):
                return True
            if spec.ignored.search(paths.encode("utf-8", "replace")):
                return True
        return False

    def ignores(self, name: str, is_directory: bool) -> bool:
        """Return True if the entry with that name in this directory is ignored."""
        for spec, prefix in reversed(self.levels):
            path = prefix + name + ("/" if is_directory else "")
            if not path.isascii():
                # Invalid bytes of a name are lone surrogates, which the engine does not accept.
                path = path.encode("utf-8", "replace").decode()
            verdict = spec.rules.check_file(path).include
            if verdict is not None:
                return verdict
        return False

    def enter(self, name: str) -> "Rules":
        """Return the rules for a subdirectory, without those of its own `.gitignore`."""
        return Rules(tuple((spec, f"{prefix}{name}/") for spec, prefix in self.levels))

    def extend(self, names: Sequence[str], read: Callable[[str, int], bytes]) -> "Rules":
        """Return these rules with those of the directory's own .gitignore. `names` are its entries; `read` returns a
        file's content, up to a number of bytes."""
        outer = () if GIT_DIRECTORY in names else self.levels
        if FILE not in names:
            return Rules(outer)
        try:
            data = read(FILE, MAX_BYTES)
        except FilesError:
            return Rules(outer)
        # git recognizes only LF and CR LF, adds an LF to the last line, and skips a byte order mark.
        text = (data.removeprefix(BOM_UTF8) + b"\n").replace(b"\r\n", b"\n").decode("utf-8", "replace")
        lines = iter(text.split("\n"))
        specs: list[_Spec | None] = []
        # Later patterns overrule earlier ones, so the order of the batches matters.
        while batch := list(islice(lines, _BATCH_LINES)):
            spec = _compile(batch)
            # As in git, an invalid line is skipped.
            specs += [spec] if spec else [_compile([line]) for line in batch]
        return Rules((*outer, *((spec, "") for spec in specs if spec)))


def rules_above(rooted: RootedFiles, place: Place) -> Rules:
    """Return the rules that apply to `place` from the directories above it, starting at its root.

    If the rules ignore `place` itself, return no rules: a search that begins at an ignored directory wants its
    contents.
    """
    rules = Rules()
    for depth, name in enumerate(place.parts):
        above = place._replace(parts=place.parts[:depth])
        names: list[str] = []
        for file in (FILE, GIT_DIRECTORY):
            with suppress(FilesError):
                rooted.stat(above.child(file), follow=False)
                names.append(file)
        rules = rules.extend(names, partial(_read, rooted, above))
        rules = Rules() if rules.ignores(name, is_directory=True) else rules.enter(name)
    return rules


def _read(rooted: RootedFiles, directory: Place, name: str, limit: int) -> bytes:
    with rooted.open_file(directory.child(name)) as handle:
        return os.read(handle.descriptor, limit)


def _compile(lines: list[str]) -> _Spec | None:
    try:
        import re2
        from pathspec import GitIgnoreSpec
    except ImportError:
        reason = ".gitignore files can't be applied without the packages pathspec and google-re2"
        suggestion = "Install the extra 'filesystem', or set includeIgnored."
        raise FilesError("not_installed", "", reason, suggestion) from None
    try:
        with warnings.catch_warnings():
            # Python warns that a `[` within a set of characters may once begin a nested set. Git knows no such sets.
            warnings.simplefilter("ignore", FutureWarning)
            rules = GitIgnoreSpec.from_lines(map(_spell_out_classes, lines), backend="re2")
    except (ValueError, re.error, re2.error):
        return None
    expressions = [rule.regex.pattern for rule in rules.patterns if rule.include and rule.regex]
    return _Spec(rules, compile_any([_NAMED_GROUP.sub("(?:", expression) for expression in expressions]))


def _spell_out_classes(line: str) -> str:
    """Return the line with the characters of named classes, as in `[[:digit:]_]`. An unknown class stays."""
    if "[:" not in line or len(line) > _MAX_LINE_CHARACTERS:
        return line
    return _BRACKETS.sub(lambda part: _CLASS.sub(lambda name: _CLASSES.get(name[1], name[0]), part[0]), line)
