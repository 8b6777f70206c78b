"""What a library has at one moment, and what it has after the next look at its folder."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from servers.prompts.errors import Problem, PromptError
from servers.prompts.format.documents import MOST_BYTES
from servers.prompts.library.folder import Entry, Signature
from servers.prompts.library.forms import SKILL, Kind, kind_of, name_in, parsed

__all__ = ["NOTHING", "File", "State", "after"]

_MOST_TOTAL = 64_000_000
"""Bytes of all files of prompts together."""


class File(NamedTuple):
    """A file with a prompt."""

    path: str
    kind: Kind
    name: str
    signature: Signature
    data: bytes
    """What it has; what it had when it was last right, where that is known to be wrong."""


class State(NamedTuple):
    """What a library has. Nothing changes it."""

    number: int
    """Grows with every change: templates are compiled with the files they include."""
    files: Mapping[str, File]
    names: Mapping[str, File]
    seen: Mapping[str, Signature | None]
    """All files and links."""
    problems: Mapping[str, Problem]


NOTHING = State(0, {}, {}, {}, {})


Wrong = Callable[[File], Problem | None]
"""Reads a file whole, and says what is wrong with it."""


def after(old: State, entries: Iterable[Entry], root: tuple[str, ...], wrong: Wrong) -> State:
    """The state after a look that found `entries` in the folder at `root`."""
    looking = _Looking(old, root, wrong)
    found = list(entries)
    skills = frozenset(one.path.rpartition("/")[0] for one in found if one.path.rpartition("/")[2] == SKILL)
    for entry in found:
        looking.take(entry, skills)
    return looking.state()


class _Looking:
    """A look under way."""

    def __init__(self, old: State, root: tuple[str, ...], wrong: Wrong) -> None:
        self._old = old
        self._root = root
        self._wrong = wrong
        self._total = 0
        self._files: dict[str, File] = {}
        self._seen: dict[str, Signature | None] = {}
        self._problems: dict[str, Problem] = {}

    def take(self, entry: Entry, skills: frozenset[str]) -> None:
        """Notes what is in the folder."""
        path = entry.path
        self._seen[path] = entry.signature
        if entry.kind == "link":
            self._problem(path, "it is a link, and links are not followed")
            return
        kind = kind_of(path, self._root, skills)
        if kind is None or entry.kind != "file":
            return
        file = self._file(entry, kind, self._old.files.get(path))
        if file is None:
            return
        self._total += len(file.data)
        if self._total > _MOST_TOTAL:
            self._problem(path, f"the files of the library have more than {_MOST_TOTAL:,} bytes together")
            return
        self._files[path] = file

    def state(self) -> State:
        """What the library has now."""
        names: dict[str, File] = {}
        for path, file in sorted(self._files.items()):
            first = names.setdefault(file.name, file)
            if first is not file:
                self._problem(path, f"{first.path} has a prompt called {file.name!r} already")
        return State(self._old.number + 1, self._files, names, self._seen, self._problems)

    def _file(self, entry: Entry, kind: Kind, known: File | None) -> File | None:
        """The file as it is, or as it was when it was right."""
        signature = entry.signature or (0, 0, 0)
        if entry.data is None:
            if known is not None and known.signature == signature and entry.path not in self._old.problems:
                return known if known.kind == kind else self._read(entry.path, kind, signature, known.data, None)
            large = signature[1] > MOST_BYTES
            self._problem(entry.path, f"it has more than {MOST_BYTES:,} bytes" if large else "it can't be read")
            return known
        return self._read(entry.path, kind, signature, entry.data, known)

    def _read(self, path: str, kind: Kind, signature: Signature, data: bytes, known: File | None) -> File:
        try:
            name = name_in(kind, data) or parsed(kind, data).name
        except PromptError:  # which says more where somebody asks for the prompt
            name = kind.name
        file = File(path, kind, name, signature, data)
        problem = self._wrong(file) if self._old.seen else None
        if problem is None:
            return file
        self._problems[path] = problem
        return file if known is None else known._replace(signature=signature)

    def _problem(self, path: str, reason: str) -> None:
        self._problems.setdefault(path, Problem(path, None, reason))
