"""Keeps the state of a library as an immutable snapshot, and computes the next one from a scan of the folder."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from shared.text import is_unicode

from ..errors import Problem, PromptError
from ..format.forms import Kind, find_kind, find_longer_names, find_name, is_manifest, parse_file
from ..format.front_matter import MAX_FILE_BYTES, NAME
from ..format.skills import LIMIT, find_excess_files
from ..templates.rendering import Read
from .folder import MAX_TOTAL_BYTES, Entry, Signature, is_hidden

_NOT_A_FILE = {
    "hidden directory": "it is hidden, and its prompts are not served: pass it as a separate DIR",
    "link": "it is a link, and links are not followed: pass its target as a separate DIR",
    "other": "it is not a file, but a pipe, a socket or a device",
}
_TOO_LARGE = f"the files of the library have more than {MAX_TOTAL_BYTES:,} bytes in total"


class File(NamedTuple):
    """A file with a prompt."""

    path: str
    kind: Kind
    name: str
    """The name under which the prompt is served."""
    signature: Signature
    data: bytes
    """The contents of the file; the last valid ones if it has become invalid."""
    declared_name: str
    """The name from the path or front matter. Another file may have the same."""


class Snapshot(NamedTuple):
    """The state of a library. It is never changed."""

    number: int
    """A number that increases with every change. A compiled template is valid for one number only, since files that
    it includes may have changed."""
    files: Mapping[str, File]
    """The files with prompts, by path."""
    names: Mapping[str, File]
    """The files with prompts, by the names of the prompts."""
    seen: Mapping[str, Signature | None]
    """All entries except directories, with their signatures; None for links and other entries that are not files."""
    directories: Mapping[str, Signature | None]
    """All directories that may contain prompts, each with the signature that it had before it was read; "" is the
    folder itself."""
    problems: Mapping[str, Problem]
    renamed: tuple[Problem, ...]
    """For each prompt that is not served under its declared name, a problem with the reason."""


EMPTY_SNAPSHOT = Snapshot(0, {}, {}, {}, {"": None}, {}, ())


class ScanChanges(NamedTuple):
    """The changes that a scan has found."""

    names: frozenset[str]
    """The names of prompts that were added or removed, or are now read from another file or other contents."""
    other_files_changed: bool
    """True if a file that prompts may include or embed has changed."""


FindProblem = Callable[[File], Problem | None]
"""Parses a file completely, and returns its problem; None if it is valid."""


def advance(
    old: Snapshot, entries: Iterable[Entry], root: tuple[str, ...], find_problem: FindProblem, read: Read
) -> Snapshot:
    """Return the state after a scan of the folder at `root` that found `entries`. The first entry must be the folder
    itself."""
    scan = _Scan(old, root, find_problem, read)
    listed = list(entries)
    skills = _find_skills(item.path for item in listed if item.kind != "directory")
    # A file that existed before is of the same kind, unless a SKILL.md was added or removed.
    if skills == _find_skills(old.seen):
        scan.kinds = {path: file.kind for path, file in old.files.items()}
    for entry in listed:
        scan.add(entry, skills)
    return scan.finish()


def _find_skills(paths: Iterable[str]) -> frozenset[str]:
    """Return the directories with a SKILL.md."""
    parts = (path.rpartition("/") for path in paths)
    return frozenset(parent for parent, _, name in parts if is_manifest(name))


def compare(old: Snapshot, new: Snapshot) -> ScanChanges:
    """Return the changes between two snapshots."""
    all_names = old.names.keys() | new.names.keys()
    names = {name for name in all_names if _get_content(old, name) != _get_content(new, name)}
    files = old.files.keys() | new.files.keys()
    others = {path for path in old.seen.keys() | new.seen.keys() if old.seen.get(path) != new.seen.get(path)}
    return ScanChanges(frozenset(names), bool(others - files))


def _get_content(snapshot: Snapshot, name: str) -> tuple[str, bytes] | None:
    file = snapshot.names.get(name)
    return None if file is None else (file.path, file.data)


class _Scan:
    """A scan in progress."""

    def __init__(self, old: Snapshot, root: tuple[str, ...], find_problem: FindProblem, read: Read) -> None:
        self._old = old
        self._root = root
        self._find_problem = find_problem
        self._read_bytes = read
        self.kinds: dict[str, Kind] = {}
        """The kinds of files that are already known, by path."""
        self._total = 0
        """Total size of the files with prompts so far, in bytes."""
        self._read_total = 0
        """Total size of the files that were read, with or without prompts, in bytes."""
        self._files: dict[str, File] = {}
        self._seen: dict[str, Signature | None] = {}
        self._directories: dict[str, Signature | None] = {}
        self._problems: dict[str, Problem] = {}

    def add(self, entry: Entry, skills: frozenset[str]) -> None:
        """Record an entry of the folder."""
        path = entry.path
        if entry.kind == "directory":
            self._directories[path] = entry.signature
            return
        self._seen[path] = entry.signature
        self._read_total += len(entry.data or b"")
        if entry.kind in _NOT_A_FILE:
            self._add_problem(path, _NOT_A_FILE[entry.kind])
            return
        kind = self.kinds.get(path) or find_kind(path, self._root, skills)
        if kind is None:
            return
        if not is_unicode(path):
            self._add_problem(path, "its path is not UTF-8")
            return
        file = self._find_file(entry, kind, self._old.files.get(path))
        if file is None:
            return
        self._total += len(file.data)
        if self._total > MAX_TOTAL_BYTES:
            self._add_problem(path, _TOO_LARGE)
            return
        self._files[path] = file

    def finish(self) -> Snapshot:
        """Return the new state of the library."""
        names: dict[str, File] = {}
        unnamed: list[File] = []
        # The first file with a name keeps it. Skills come before commands, as in Claude Code, and then files with
        # fewer folders in their paths, since there are fewer longer names for them.
        by_precedence = sorted(
            self._files.items(), key=lambda item: (item[1].kind.form != "skill", item[0].count("/"), item[0])
        )
        for path, file in by_precedence:
            if NAME.fullmatch(file.declared_name) is None or path != names.setdefault(file.declared_name, file).path:
                unnamed.append(file)
            elif file.name != file.declared_name:
                names[file.declared_name] = self._files[path] = file._replace(name=file.declared_name)
        renamed = [problem for file in unnamed if (problem := self._rename(file, names)) is not None]
        sizes: dict[str, dict[str, int]] = {parent: {} for parent in _find_skills(self._seen)}
        for path, signature in self._seen.items() if sizes else ():
            parts = path.split("/")
            for depth in range(len(parts)):
                skill_sizes, inner_path = sizes.get("/".join(parts[:depth])), "/".join(parts[depth:])
                if skill_sizes is not None and signature is not None and not is_hidden(inner_path):
                    skill_sizes[inner_path] = signature[1]
        for parent, skill_sizes in sizes.items():
            manifest = sum(skill_sizes.pop(path) for path in [*filter(is_manifest, skill_sizes)])
            for inner_path in find_excess_files(skill_sizes, manifest):
                self._add_problem(f"{parent}/{inner_path}".lstrip("/"), f"it is not part of the skill: {LIMIT}")
        number = self._old.number + 1
        return Snapshot(
            number, self._files, names, self._seen, self._directories, self._problems, tuple(sorted(renamed))
        )

    def _rename(self, file: File, names: dict[str, File]) -> Problem | None:
        """Add the file to `names` under another name, which contains more of its path, and return a problem that says
        so. If no such name is free, record a problem and return None."""
        first = names.get(file.declared_name)
        if first is None:
            reason = "its name is not valid for a prompt: it must have 1 to 128 characters, and no control characters"
            # The longest valid name is the clearest.
            candidates = [*find_longer_names(file.path, file.kind, file.declared_name)][::-1]
        else:
            reason = f"{first.path!r} has a prompt called {file.declared_name!r} already"
            longer = [
                name
                for all_folders in (False, True)
                for name in find_longer_names(file.path, file.kind, file.declared_name, all_folders)
            ]
            candidates = [name for name in longer if len(name) > len(file.declared_name)]
        name = next((name for name in candidates if NAME.fullmatch(name) and name not in names), None)
        if name is None:
            self._add_problem(file.path, reason)
            if first is None:
                del self._files[file.path]
            return None
        names[name] = self._files[file.path] = file._replace(name=name)
        kind = " and is not a skill" if file.kind.form == "skill" else ""
        return Problem(file.path, None, f"it is called {name!r}{kind}: {reason}")

    def _find_file(self, entry: Entry, kind: Kind, previous: File | None) -> File | None:
        """Return the file of an entry with its current contents, or else with its last valid ones; None if it can't
        be read and was never valid."""
        signature = entry.signature or (0, 0, 0)
        if entry.data is None and previous is None and self._old.seen.get(entry.path) == signature:
            # The walk did not read the file, since it has not changed. But it was no prompt before, and now it is.
            try:
                data = self._read_bytes(entry.path, MAX_FILE_BYTES)
            except PromptError:
                data = None
            entry = entry._replace(data=data)
        if entry.data is None:
            if previous is not None and previous.signature == signature and entry.path not in self._old.problems:
                return (
                    previous
                    if previous.kind == kind
                    else self._make_file(entry.path, kind, signature, previous.data, None)
                )
            if signature[1] > MAX_FILE_BYTES:
                reason = f"it has more than {MAX_FILE_BYTES:,} bytes"
            else:
                reason = _TOO_LARGE if self._read_total > MAX_TOTAL_BYTES else "it can't be read"
            self._add_problem(entry.path, reason)
            return previous
        return self._make_file(entry.path, kind, signature, entry.data, previous)

    def _make_file(self, path: str, kind: Kind, signature: Signature, data: bytes, previous: File | None) -> File:
        try:
            name = find_name(kind, data) or parse_file(kind, data).name
        except PromptError:  # the error is reported when the prompt is requested
            name = kind.name
        file = File(path, kind, name, signature, data, name)
        problem = self._find_problem(file) if self._old.seen else None
        if problem is None:
            return file
        self._problems[path] = problem
        return file if previous is None else previous._replace(signature=signature)

    def _add_problem(self, path: str, reason: str) -> None:
        self._problems.setdefault(path, Problem(path, None, reason))
