"""What a library has at one moment, and what it has after the next look at its folder."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from servers.prompts.errors import Problem, PromptError
from servers.prompts.format.forms import SKILL, Kind, find_kind, find_name, parse_file
from servers.prompts.format.front_matter import MOST_BYTES, NAME
from servers.prompts.format.skills import LIMIT, find_unfitting
from servers.prompts.library.folder import MOST_TOTAL, Entry, Signature, is_hidden
from servers.prompts.templates.rendering import Read
from shared.text import is_unicode

_NO_FILE = {
    "link": "it is a link, and links are not followed",
    "other": "it is not a file, but a pipe, a socket or a device",
}
_TOO_MUCH = f"the files of the library have more than {MOST_TOTAL:,} bytes together"


class File(NamedTuple):
    """A file with a prompt."""

    path: str
    kind: Kind
    name: str
    signature: Signature
    data: bytes
    """What it has; what it had when it was last right, where that is known to be wrong."""


class Snapshot(NamedTuple):
    """What a library has. Nothing changes it."""

    number: int
    """Grows with every change: templates are compiled with the files they include."""
    files: Mapping[str, File]
    names: Mapping[str, File]
    seen: Mapping[str, Signature | None]
    """All files, links and whatever else there is but directories; with None what is no file."""
    directories: Mapping[str, Signature | None]
    """All that may have prompts, as they were before they were read; "" is the folder itself."""
    problems: Mapping[str, Problem]


NOTHING = Snapshot(0, {}, {}, {}, {"": None}, {})


class Changed(NamedTuple):
    """What a look found."""

    names: frozenset[str]
    """The prompts that came, went, or have another file or text."""
    others: bool
    """Whether a file changed that prompts may include or embed."""


Wrong = Callable[[File], Problem | None]
"""Reads a file whole, and says what is wrong with it."""


def advance(old: Snapshot, entries: Iterable[Entry], root: tuple[str, ...], wrong: Wrong, read: Read) -> Snapshot:
    """The state after a look that found `entries` in the folder at `root`, which itself is the first of them."""
    looking = _Look(old, root, wrong, read)
    found = list(entries)
    skills = _find_skills(one.path for one in found if one.kind != "directory")
    # A file that was there is still what it was, unless a skill has come around it or gone.
    if skills == _find_skills(old.seen):
        looking.kinds = {path: file.kind for path, file in old.files.items()}
    for entry in found:
        looking.take(entry, skills)
    return looking.finish()


def _find_skills(paths: Iterable[str]) -> frozenset[str]:
    """The directories with a SKILL.md."""
    found = (path.rpartition("/") for path in paths if path.endswith(SKILL))
    return frozenset(above for above, _, name in found if name == SKILL)


def _find_unfitting(seen: Mapping[str, Signature | None]) -> Iterator[str]:
    """The files that do not fit into the skill in whose directory they are."""
    sizes: dict[str, dict[str, int]] = {above: {} for above in _find_skills(seen)}
    for path, signature in seen.items() if sizes else ():
        names = path.split("/")
        for depth in range(len(names)):
            inside, below = sizes.get("/".join(names[:depth])), "/".join(names[depth:])
            if inside is not None and signature is not None and not is_hidden(below):
                inside[below] = signature[1]
    for above, inside in sizes.items():
        manifest = inside.pop(SKILL, 0)
        yield from (f"{above}/{path}".lstrip("/") for path in find_unfitting(inside, manifest))


def compare(old: Snapshot, new: Snapshot) -> Changed:
    """What became of the names and files."""
    names = {name for name in old.names.keys() | new.names.keys() if _get_text(old, name) != _get_text(new, name)}
    files = old.files.keys() | new.files.keys()
    others = {path for path in old.seen.keys() | new.seen.keys() if old.seen.get(path) != new.seen.get(path)}
    return Changed(frozenset(names), bool(others - files))


def _get_text(snapshot: Snapshot, name: str) -> tuple[str, bytes] | None:
    found = snapshot.names.get(name)
    return None if found is None else (found.path, found.data)


class _Look:
    """A look under way."""

    def __init__(self, old: Snapshot, root: tuple[str, ...], wrong: Wrong, read: Read) -> None:
        self._old = old
        self._root = root
        self._wrong = wrong
        self._bytes = read
        self.kinds: dict[str, Kind] = {}
        """Of files that need no other one."""
        self._total = 0
        self._files: dict[str, File] = {}
        self._seen: dict[str, Signature | None] = {}
        self._directories: dict[str, Signature | None] = {}
        self._problems: dict[str, Problem] = {}

    def take(self, entry: Entry, skills: frozenset[str]) -> None:
        """Notes what is in the folder."""
        path = entry.path
        if entry.kind == "directory":
            self._directories[path] = entry.signature
            return
        self._seen[path] = entry.signature
        if entry.kind in _NO_FILE:
            self._problem(path, _NO_FILE[entry.kind])
            return
        kind = self.kinds.get(path) or find_kind(path, self._root, skills)
        if kind is None:
            return
        if not is_unicode(path):
            self._problem(path, "its path is not UTF-8")
            return
        file = self._file(entry, kind, self._old.files.get(path))
        if file is None:
            return
        if NAME.fullmatch(file.name) is None:
            reason = "its name is not valid for a prompt: it has 1 to 128 characters, and no control characters"
            self._problem(path, reason)
            return
        self._total += len(file.data)
        if self._total > MOST_TOTAL:
            self._problem(path, _TOO_MUCH)
            return
        self._files[path] = file

    def finish(self) -> Snapshot:
        """What the library has now."""
        names: dict[str, File] = {}
        for path, file in sorted(self._files.items()):
            first = names.setdefault(file.name, file)
            if first is not file:
                self._problem(path, f"{first.path!r} has a prompt called {file.name!r} already")
        for path in _find_unfitting(self._seen):
            self._problem(path, f"the skill goes without it: {LIMIT}")
        return Snapshot(self._old.number + 1, self._files, names, self._seen, self._directories, self._problems)

    def _file(self, entry: Entry, kind: Kind, known: File | None) -> File | None:
        """The file as it is, or as it was when it was right."""
        signature = entry.signature or (0, 0, 0)
        if entry.data is None and known is None and self._old.seen.get(entry.path) == signature:
            # It did not change, and was no prompt before.
            try:
                data = self._bytes(entry.path, MOST_BYTES)
            except PromptError:
                data = None
            entry = entry._replace(data=data)
        if entry.data is None:
            if known is not None and known.signature == signature and entry.path not in self._old.problems:
                return known if known.kind == kind else self._read(entry.path, kind, signature, known.data, None)
            if signature[1] > MOST_BYTES:
                reason = f"it has more than {MOST_BYTES:,} bytes"
            else:
                reason = _TOO_MUCH if self._total > MOST_TOTAL - MOST_BYTES else "it can't be read"
            self._problem(entry.path, reason)
            return known
        return self._read(entry.path, kind, signature, entry.data, known)

    def _read(self, path: str, kind: Kind, signature: Signature, data: bytes, known: File | None) -> File:
        try:
            name = find_name(kind, data) or parse_file(kind, data).name
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
