"""Reads and parses the prompts of one folder.

Starting with thousands of files must take less than a second, but parsing YAML takes a fifth of a millisecond per
file. So `scan` reads the bytes of each file, and finds the name of its prompt, usually without parsing YAML. The rest
is parsed when the prompt is requested. The bytes are kept, so that the last valid contents are served if the file
becomes invalid. A file that changes after the first scan is parsed completely at once, so that its errors are known.
A scan builds a new `Snapshot` and replaces the old one at its end, so that no reader sees an incomplete state.
"""

from collections import OrderedDict
from collections.abc import Hashable
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Generic, TypeVar

from ..errors import Problem, PromptError
from ..format.definitions import Prompt
from ..format.forms import HIDDEN_FOLDERS, SKILL, Kind, find_kind, is_manifest, parse_file
from ..format.front_matter import parse_document
from ..format.skills import (
    MAX_BYTES,
    find_excess_files,
    format_manifest,
    require_size,
    require_valid_manifest,
)
from ..templates.budget import MAX_FILE_BYTES
from ..templates.plain_words import write_plain_text
from ..templates.rendering import Read, Rendering
from .folder import Entry, Folder, Signature, is_hidden
from .snapshot import EMPTY_SNAPSHOT, File, ScanChanges, Snapshot, advance, compare

V = TypeVar("V")
_MAX_PARSED, _MAX_COMPILED = 2_000_000, 2_000_000
"""Maximum sizes of the caches for parsed prompts and for compiled templates. The size of an entry is that of the
prompt's file in bytes, and some overhead."""


class Cache(Generic[V]):
    """A thread-safe cache of the most recently used values. Their total weight is at most `max_bytes`."""

    def __init__(self, max_bytes: int) -> None:
        self._remaining = max_bytes
        self._lock = Lock()
        self._values: OrderedDict[Hashable, tuple[V, int]] = OrderedDict()

    def get(self, key: Hashable) -> V | None:
        """Return the value; None if it is not cached."""
        with self._lock:
            entry = self._values.get(key)
            if entry is None:
                return None
            self._values.move_to_end(key)
            return entry[0]

    def put(self, key: Hashable, value: V, weight: int) -> None:
        """Store a value, and remove the least recently used ones if the total weight is too large."""
        with self._lock:
            if key in self._values:
                self._remaining += self._values.pop(key)[1]
            self._values[key] = value, weight
            self._remaining -= weight
            while self._remaining < 0:
                _, (_, freed) = self._values.popitem(last=False)
                self._remaining += freed


class Library:
    """The prompts of a folder. It is thread-safe, except that calls of `scan` must not overlap."""

    def __init__(self, root: Path) -> None:
        self._folder = Folder(root)
        self._snapshot = EMPTY_SNAPSHOT
        self._parsed: Cache[Prompt] = Cache(_MAX_PARSED)
        self._compiled: Cache[Rendering] = Cache(_MAX_COMPILED)
        self._known_problems: dict[str, tuple[Signature, Problem]] = {}
        """The problems that were found when files were parsed, by path, each with the signature that the file had
        then."""
        self._counted = (-1, 0)
        """The last result of `count`: the number of the snapshot, and how many of its prompts are valid."""

    @property
    def root(self) -> Path:
        """The path of the folder."""
        return self._folder.root

    @property
    def names(self) -> list[str]:
        """The sorted names of all prompts, including those whose file may turn out to be broken."""
        return sorted(self._snapshot.names)

    def __contains__(self, name: str) -> bool:
        return name in self._snapshot.names

    @property
    def directories(self) -> list[Path]:
        """The directories in which changes may affect the library."""
        return [self.root / path for path in self._snapshot.directories]

    def path(self, name: str) -> str:
        """Return the file of a prompt, relative to the folder. Raises PromptError if the prompt does not exist."""
        return self._file(name).path

    def declared_name(self, name: str) -> str:
        """Return the name that the file of a prompt declares. Raises PromptError if the prompt does not exist."""
        return self._file(name).declared_name

    def source(self, name: str) -> bytes:
        """Return the contents of a prompt's file; the last valid contents if it is now broken."""
        return self._file(name).data

    def prompt(self, name: str) -> Prompt:
        """Return the prompt. Raises PromptError with code `not_found`, or `bad_prompt` if its file is broken."""
        return self._prompt(self._file(name))

    def kind(self, name: str) -> Kind:
        """Return the kind of a prompt's file. Raises PromptError if the prompt does not exist."""
        return self._file(name).kind

    def kind_at(self, path: str) -> Kind | None:
        """Return the kind that a file at `path` has, or would have; None if it is not a prompt."""
        files = self._snapshot.files
        skills = frozenset(
            file_path.rpartition("/")[0] for file_path in files if files[file_path].kind.form == "skill"
        )
        return find_kind(path, self.root.parts, skills)

    def rendering(self, name: str) -> Rendering:
        """Return the current prompt, ready to be rendered. Raises PromptError."""
        # Get the snapshot first, so that a template is never cached under the number of a newer snapshot.
        snapshot, file = self._snapshot, self._file(name)
        key = snapshot.number, file.path
        rendering = self._compiled.get(key)
        if rendering is None:
            prompt = self._prompt(file)
            rendering = Rendering(prompt, self.reader(prompt))
            self._compiled.put(key, rendering, 2 * len(file.data) + 4_000)
        return rendering

    def get_compiled(self, name: str) -> Rendering | None:
        """Return the current prompt if it was compiled before; otherwise None."""
        snapshot = self._snapshot
        file = snapshot.names.get(name)
        return None if file is None else self._compiled.get((snapshot.number, file.path))

    def read(self, path: str, max_bytes: int) -> bytes:
        """Return the contents of a file in the folder. Raises PromptError: `not_found`, or `too_large` for more
        bytes."""
        return self._folder.read(path, max_bytes)

    def has_file(self, path: str) -> bool:
        """Return True if the folder has an entry at this path, even one that is not read, such as a link."""
        return path in self._snapshot.seen

    def export(self, name: str) -> dict[str, bytes]:
        """Return the prompt as a skill: the contents of the skill's files, by their paths in its directory. If the
        prompt is a skill, its files are unchanged. A template is converted to plain text. Raises PromptError."""
        snapshot, file = self._snapshot, self._file(name)
        prompt = self._prompt(file)
        read = self.reader(prompt)
        if file.kind.form == "skill":
            require_valid_manifest(prompt, parse_document(file.data))
            sibling_files = _find_siblings(snapshot, file)
            sizes = [signature[1] for signature in sibling_files.values() if signature is not None]
            require_size([len(file.data), *sizes])
            for path, signature in sibling_files.items():
                if signature is None:
                    raise PromptError("bad_prompt", f"{path!r} is a link, which is not followed, or not a file")
            return {SKILL: file.data, **{path: read(path, MAX_BYTES) for path in sorted(sibling_files)}}
        rendering = self.rendering(name)
        files = {path: read(path, MAX_FILE_BYTES) for path in rendering.embeds}
        if SKILL in files:
            raise PromptError("bad_prompt", f"a message refers to a file that is called {SKILL}")
        body = write_plain_text(rendering) if prompt.syntax == "jinja" else prompt.messages[0].content
        return {SKILL: format_manifest(prompt, body).encode(), **files}

    def sibling_files(self, name: str) -> dict[str, int] | None:
        """Return the sizes of a skill's files other than SKILL.md, by path in its directory; None if the prompt is
        not a SKILL.md. Links, hidden files, and files that exceed the limits of skills are left out."""
        snapshot, file = self._snapshot, self._file(name)
        if file.kind.form != "skill":
            return None
        sizes = {
            path: signature[1] for path, signature in _find_siblings(snapshot, file).items() if signature is not None
        }
        left_out = find_excess_files(sizes, len(file.data))
        return {path: size for path, size in sizes.items() if path not in left_out}

    def add_problem(self, name: str, file: str, reason: str) -> None:
        """Add a problem with a file in the directory of the skill `name`, until the file changes. Do nothing if the
        prompt is not a SKILL.md, since it need not be a valid skill."""
        if self.kind(name).form != "skill":
            return
        path = _make_prefix(self.kind(name).base) + file
        signature = self._snapshot.seen.get(path)
        if signature is not None:
            self._known_problems.setdefault(path, (signature, Problem(path, None, reason)))

    def scripts(self, name: str) -> frozenset[str]:
        """Return the executable files of a skill, by their paths in its directory; empty for any other prompt."""
        base = _make_prefix(self.kind(name).base)
        return frozenset(path for path in self.sibling_files(name) or () if self._folder.is_executable(base + path))

    def reader(self, prompt: Prompt) -> Read:
        """Return a function that reads the files to which the prompt refers, relative to `Prompt.base`."""
        base = _make_prefix(prompt.base)

        def read(path: str, max_bytes: int) -> bytes:
            # A library may be a project, whose .git and .env must not be readable through prompts.
            if is_hidden(path):
                raise PromptError("not_found", f"{path[:200]!r} is hidden")
            return self.read(base + path, max_bytes)

        return read

    def problems(self) -> list[Problem]:
        """Return the known problems. Files that were not parsed yet may have others, which `check` finds."""
        snapshot = self._snapshot
        by_path = dict(snapshot.problems)
        for path, (signature, problem) in list(self._known_problems.items()):
            if snapshot.seen.get(path) == signature:
                by_path.setdefault(path, problem)
        for renamed in snapshot.renamed:
            other = by_path.get(renamed.path)
            reason = renamed.reason if other is None else f"{other.reason}; {renamed.reason}"
            by_path[renamed.path] = (other or renamed)._replace(reason=reason)
        return sorted(by_path.values())

    def check(self) -> list[Problem]:
        """Parse all files, and return all problems. This takes a second for a few thousand files."""
        for file in self._snapshot.files.values():
            self._find_problem(file)
        return self.problems()

    def count(self) -> int:
        """Return the number of prompts whose file is valid. The first call after a change is as slow as `check`."""
        snapshot = self._snapshot
        if self._counted[0] != snapshot.number:
            served = sum(self._find_problem(file) is None for file in snapshot.names.values())
            self._counted = snapshot.number, served
        return self._counted[1]

    def is_behind(self) -> bool:
        """Return True if an entry was added to or removed from a directory since the last scan, or if a file with a
        problem has changed: it may have been read while it was being written. Blocks."""
        snapshot = self._snapshot
        faulty = {path: signature for path in snapshot.problems if (signature := snapshot.seen.get(path)) is not None}
        return any(
            self._folder.signature(path) != signature
            for path, signature in {**snapshot.directories, **faulty}.items()
        )

    def scan(self) -> ScanChanges | None:
        """Read new and changed files since the last scan. Return None if there are none. Blocks: 10,000 files take
        half a second at first, and less later. If the folder can't be read, its last state is kept, with a
        problem."""
        old = self._snapshot
        cached = {path: value for path, value in old.seen.items() if value is not None and path not in old.problems}
        folder = Entry("", "directory", self._folder.signature(""))
        try:
            entries = chain((folder,), self._folder.walk(HIDDEN_FOLDERS, cached))
            new = advance(old, entries, self.root.parts, self._find_problem, self.read)
        except (OSError, PromptError) as error:
            reason = error.reason if isinstance(error, PromptError) else "the folder can't be read"
            new = old._replace(problems={**old.problems, "": Problem("", None, reason)})
        if (new.seen, new.problems) == (old.seen, old.problems):
            self._snapshot = old._replace(directories=new.directories)
            return None
        known = self._known_problems.items()
        self._known_problems = {path: value for path, value in known if new.seen.get(path) == value[0]}
        self._snapshot = new
        return compare(old, new)

    def _file(self, name: str) -> File:
        file = self._snapshot.names.get(name)
        if file is None:
            raise PromptError("not_found", f"there is no prompt {name[:128]!r}")
        return file

    def _find_problem(self, file: File) -> Problem | None:
        try:
            self._prompt(file)
        except PromptError as error:
            return Problem(file.path, error.line, error.reason)
        return None

    def _prompt(self, file: File) -> Prompt:
        key = file.path, file.signature, len(file.data), file.name
        prompt = self._parsed.get(key)
        if prompt is None:
            try:
                prompt = parse_file(file.kind, file.data)
                if prompt.name != file.declared_name:
                    reason = (
                        "its name can't be read from the front matter: write it on one line, as in name: review-code"
                    )
                    raise PromptError("bad_prompt", reason)
            except PromptError as error:
                self._known_problems[file.path] = file.signature, Problem(file.path, error.line, error.reason)
                raise
            if prompt.notice is not None:
                self._known_problems.setdefault(file.path, (file.signature, Problem(file.path, *prompt.notice)))
            prompt = prompt._replace(name=file.name)
            self._parsed.put(key, prompt, len(file.data) + 1_000)
        return prompt


def _make_prefix(base: str) -> str:
    return f"{base}/" if base else ""


def _find_siblings(snapshot: Snapshot, file: File) -> dict[str, Signature | None]:
    """Return the entries next to a SKILL.md, except hidden ones, by path in its directory; the signature of a link is
    None."""
    base = _make_prefix(file.kind.base)
    inside = {
        path.removeprefix(base): signature for path, signature in snapshot.seen.items() if path.startswith(base)
    }
    return {path: signature for path, signature in inside.items() if not (is_manifest(path) or is_hidden(path))}
