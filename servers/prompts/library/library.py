"""One folder of prompts.

Theory. Starting with thousands of files may take no second, and YAML takes a fifth of a millisecond a file. So `look`
reads the bytes of each file and finds its name, mostly by the line that has it; the rest is read when somebody asks
for that prompt. The bytes stay: a file that is broken later keeps what it had. Whatever changes after the first look
is read whole at once, so it is known whether that is right.

A look makes a new state and puts it in the place of the old one at its end, so nobody sees half of it.
"""

from collections import OrderedDict
from collections.abc import Hashable
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Generic, TypeVar

from servers.prompts.errors import Problem, PromptError
from servers.prompts.format.definitions import Prompt
from servers.prompts.format.forms import HIDDEN_FOLDERS, SKILL, Kind, find_kind, parse_file
from servers.prompts.format.front_matter import parse_document
from servers.prompts.format.skills import MOST_BYTES, find_unfitting, format_manifest, require_named, require_size
from servers.prompts.library.folder import Entry, Folder, Signature, is_hidden
from servers.prompts.library.snapshot import NOTHING, Changed, File, Snapshot, advance, compare
from servers.prompts.templates.budget import MOST_FILE_BYTES
from servers.prompts.templates.plain_words import put_in_words
from servers.prompts.templates.rendering import Read, Rendering

V = TypeVar("V")
_MOST_PARSED, _MOST_COMPILED = 2_000_000, 2_000_000
"""What prompts, or templates, that are kept ready may weigh: about the bytes of their files, and some for each."""


class Cache(Generic[V]):
    """The values used last, up to a weight in all. Thread-safe."""

    def __init__(self, most: int) -> None:
        self._left = most
        self._lock = Lock()
        self._values: OrderedDict[Hashable, tuple[V, int]] = OrderedDict()

    def get(self, key: Hashable) -> V | None:
        """The value, or None where there is none, or none any more."""
        with self._lock:
            found = self._values.get(key)
            if found is None:
                return None
            self._values.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, value: V, weight: int) -> None:
        """Keeps a value, in place of those that were not used for longest."""
        with self._lock:
            if key in self._values:
                self._left += self._values.pop(key)[1]
            self._values[key] = value, weight
            self._left -= weight
            while self._left < 0:
                _, (_, freed) = self._values.popitem(last=False)
                self._left += freed


class Library:
    """The prompts of a folder. Thread-safe, but that nobody may call `look` while it is under way."""

    def __init__(self, root: Path) -> None:
        self._folder = Folder(root)
        self._snapshot = NOTHING
        self._parsed: Cache[Prompt] = Cache(_MOST_PARSED)
        self._compiled: Cache[Rendering] = Cache(_MOST_COMPILED)
        self._broken: dict[str, tuple[Signature, Problem]] = {}
        self._counted = (-1, 0)
        """The number of a snapshot, and how many prompts it serves."""

    @property
    def root(self) -> Path:
        """The folder."""
        return self._folder.root

    @property
    def names(self) -> list[str]:
        """The names of all prompts, sorted; those too whose file will turn out to be broken."""
        return sorted(self._snapshot.names)

    def __contains__(self, name: str) -> bool:
        return name in self._snapshot.names

    @property
    def directories(self) -> list[Path]:
        """The directories where a change may be one of the library."""
        return [self.root / path for path in self._snapshot.directories]

    def path(self, name: str) -> str:
        """The file of a prompt, within the folder. Raises PromptError where there is none."""
        return self._file(name).path

    def source(self, name: str) -> bytes:
        """What is in the file of a prompt; what it had when it was last right, where it is broken by now."""
        return self._file(name).data

    def prompt(self, name: str) -> Prompt:
        """The prompt. Raises PromptError: `not_found`, or `bad_prompt` for one whose file is broken."""
        return self._prompt(self._file(name))

    def kind(self, name: str) -> Kind:
        """What the file of a prompt is. Raises PromptError where there is none."""
        return self._file(name).kind

    def kind_at(self, path: str) -> Kind | None:
        """What a file at `path` is, or would be; None where that is no prompt."""
        files = self._snapshot.files
        skills = frozenset(one.rpartition("/")[0] for one in files if files[one].kind.form == "skill")
        return find_kind(path, self.root.parts, skills)

    def rendering(self, name: str) -> Rendering:
        """The prompt as it is now, ready to be rendered. Raises PromptError."""
        # The state first: otherwise what was there before could be kept under the number of a newer one.
        snapshot, file = self._snapshot, self._file(name)
        key = snapshot.number, file.path
        rendering = self._compiled.get(key)
        if rendering is None:
            prompt = self._prompt(file)
            rendering = Rendering(prompt, self.reader(prompt))
            self._compiled.put(key, rendering, 2 * len(file.data) + 4_000)
        return rendering

    def read(self, path: str, most: int) -> bytes:
        """What is in a file of the folder. Raises PromptError: `not_found`, or `too_large` for more bytes."""
        return self._folder.read(path, most)

    def has_file(self, path: str) -> bool:
        """Whether the folder has a file of this path, or what is not read in its place, such as a link."""
        return path in self._snapshot.seen

    def export(self, name: str) -> dict[str, bytes]:
        """The prompt as a skill: the files of its directory, by path. One that is a skill is given as it is, with all
        that is beside it; a template is put into plain words. Raises PromptError."""
        snapshot, file = self._snapshot, self._file(name)
        prompt = self._prompt(file)
        read = self.reader(prompt)
        if file.kind.form == "skill":
            require_named(prompt, parse_document(file.data))
            beside = _find_beside(snapshot, file)
            require_size([len(file.data), *(one[1] for one in beside.values() if one is not None)])
            for path, signature in beside.items():
                if signature is None:
                    raise PromptError("bad_prompt", f"{path!r} is a link, which is not followed, or no file")
            return {SKILL: file.data, **{path: read(path, MOST_BYTES) for path in sorted(beside)}}
        rendering = self.rendering(name)
        files = {path: read(path, MOST_FILE_BYTES) for path in rendering.embeds}
        if SKILL in files:
            raise PromptError("bad_prompt", f"a message has a file that is called {SKILL}")
        body = put_in_words(rendering) if prompt.syntax == "jinja" else prompt.messages[0].content
        return {SKILL: format_manifest(prompt, body).encode(), **files}

    def beside(self, name: str) -> dict[str, int] | None:
        """The sizes of the files of a skill besides its SKILL.md, by their paths in its directory; None for a prompt
        that is no SKILL.md. Links, and what is hidden, are no part of it; what is too large is among the problems."""
        snapshot, file = self._snapshot, self._file(name)
        if file.kind.form != "skill":
            return None
        sizes = {path: one[1] for path, one in _find_beside(snapshot, file).items() if one is not None}
        left_out = find_unfitting(sizes, len(file.data))
        return {path: size for path, size in sizes.items() if path not in left_out}

    def note(self, name: str, file: str, reason: str) -> None:
        """Has it among the problems, until the file changes, that something is wrong with the skill that the prompt
        of this name is: with its SKILL.md, or with another file in its directory. A prompt that is no SKILL.md is
        none of a skill's files, and no problem as a prompt."""
        if self.kind(name).form != "skill":
            return
        whole = _make_prefix(self.kind(name).base) + file
        signature = self._snapshot.seen.get(whole)
        if signature is not None:
            self._broken.setdefault(whole, (signature, Problem(whole, None, reason)))

    def scripts(self, name: str) -> frozenset[str]:
        """Those files beside a SKILL.md that may be executed."""
        base = _make_prefix(self.kind(name).base)
        return frozenset(path for path in self.beside(name) or () if self._folder.is_executable(base + path))

    def reader(self, prompt: Prompt) -> Read:
        """How the files are read that the prompt names: they lie in its base."""
        base = _make_prefix(prompt.base)

        def read(path: str, most: int) -> bytes:
            # A library may be a project, whose .git and .env are nobody's prompts.
            if is_hidden(path):
                raise PromptError("not_found", f"{path[:200]!r} is hidden")
            return self.read(base + path, most)

        return read

    def problems(self) -> list[Problem]:
        """What is wrong with files, as far as they were read; `check` reads them all."""
        snapshot = self._snapshot
        found = dict(snapshot.problems)
        for path, (signature, problem) in list(self._broken.items()):
            if snapshot.seen.get(path) == signature:
                found.setdefault(path, problem)
        return sorted(found.values())

    def check(self) -> list[Problem]:
        """What is wrong with all files. Takes a second for some thousands."""
        for file in self._snapshot.files.values():
            self._wrong(file)
        return self.problems()

    def count(self) -> int:
        """How many prompts are served: those whose file is not broken. Takes as long as `check`, once a change."""
        snapshot = self._snapshot
        if self._counted[0] != snapshot.number:
            served = sum(self._wrong(file) is None for file in snapshot.names.values())
            self._counted = snapshot.number, served
        return self._counted[1]

    def is_behind(self) -> bool:
        """Whether since the last look something came or went in one of the directories, or one of the files changed
        that were wrong then: it may have been half written. Blocks."""
        snapshot = self._snapshot
        wrong = {path: one for path in snapshot.problems if (one := snapshot.seen.get(path)) is not None}
        return any(self._folder.signature(path) != one for path, one in {**snapshot.directories, **wrong}.items())

    def look(self) -> Changed | None:
        """Reads what is new or changed since the last look; None where nothing is. Blocks: 10,000 files take half a
        second at first, and less later. A folder that can't be read is a problem, and keeps what it had."""
        old = self._snapshot
        known = {path: one for path, one in old.seen.items() if one is not None and path not in old.problems}
        folder = Entry("", "directory", self._folder.signature(""))
        try:
            found = chain((folder,), self._folder.walk(HIDDEN_FOLDERS, known))
            new = advance(old, found, self.root.parts, self._wrong, self.read)
        except (OSError, PromptError) as error:
            reason = error.reason if isinstance(error, PromptError) else "the folder can't be read"
            new = old._replace(problems={**old.problems, "": Problem("", None, reason)})
        if (new.seen, new.problems) == (old.seen, old.problems):
            self._snapshot = old._replace(directories=new.directories)
            return None
        self._broken = {path: one for path, one in self._broken.items() if new.seen.get(path) == one[0]}
        self._snapshot = new
        return compare(old, new)

    def _file(self, name: str) -> File:
        found = self._snapshot.names.get(name)
        if found is None:
            raise PromptError("not_found", f"there is no prompt {name[:128]!r}")
        return found

    def _wrong(self, file: File) -> Problem | None:
        try:
            self._prompt(file)
        except PromptError as error:
            return Problem(file.path, error.line, error.reason)
        return None

    def _prompt(self, file: File) -> Prompt:
        key = file.path, file.signature, len(file.data)
        found = self._parsed.get(key)
        if found is None:
            try:
                found = parse_file(file.kind, file.data)
                if found.name != file.name:
                    reason = "its name is written in a way that hides it: write name: and the name"
                    raise PromptError("bad_prompt", reason)
            except PromptError as error:
                self._broken[file.path] = file.signature, Problem(file.path, error.line, error.reason)
                raise
            if found.notice is not None:
                self._broken.setdefault(file.path, (file.signature, Problem(file.path, *found.notice)))
            self._parsed.put(key, found, len(file.data) + 1_000)
        return found


def _make_prefix(base: str) -> str:
    return f"{base}/" if base else ""


def _find_beside(snapshot: Snapshot, file: File) -> dict[str, Signature | None]:
    """What lies beside a SKILL.md: files and links by their paths in its directory, but what is hidden."""
    base = _make_prefix(file.kind.base)
    found = {path.removeprefix(base): one for path, one in snapshot.seen.items() if path.startswith(base)}
    return {path: one for path, one in found.items() if path != SKILL and not is_hidden(path)}
