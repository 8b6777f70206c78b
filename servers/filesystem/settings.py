"""The operator's settings for the filesystem server."""

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import BaseModel, Field, PrivateAttr, field_validator, model_validator

from servers.common.files.denylist import Denylist
from servers.common.machine import state_folder, this_machine
from servers.common.within import resolve_within
from shared.program.messages import missing_extra_message
from shared.program.settings.options import FieldError, expand_home, option, positional

from .errors import FilesError
from .history import recording

_MEGABYTE = 1024 * 1024
_MODES = {"ro": False, "rw": True}
"""The modes of a directory, each with True if files may be changed there."""
MAX_ROOTS = 100
"""Maximum number of directories that a principal is limited to."""


class Narrowing(BaseModel, defer_build=True):
    """The part of the allowed directories that a principal can be limited to."""

    roots: list[Path] = Field([], max_length=MAX_ROOTS, description="directories within those of the server")


class Settings(BaseModel):
    """The allowed directories, whether files may be changed there, and how much one read may return."""

    narrowing: ClassVar[type[BaseModel]] = Narrowing
    _within: tuple[Path, ...] | None = PrivateAttr(None)

    roots: list[Path] = positional("directories that may be read", "DIR", required=True)
    root: list[str] = option([], "directory with its own permission: DIR:ro or DIR:rw", "DIR:MODE", paths_after="")
    allow_write: bool = Field(False, description="offer the tools that change files, in every DIR without :ro")
    deny: list[str] = option([], "glob of files to deny, in addition to the built-in list of secrets", "GLOB")
    allow: list[str] = option([], "glob of files to allow despite the built-in list of secrets", "GLOB")
    disable_tool: list[str] = option([], "name of a tool to disable", "TOOL")
    max_read: int = Field(
        100_000, ge=1_000, le=900_000, description="maximum bytes of text in the result of one read, as JSON"
    )
    poll: bool = Field(False, description="poll for changes every second, if the system does not report them")
    replace_protected: bool = Field(
        False,
        description="also replace write-protected files, and files with several hard links, which breaks the links",
    )
    no_undo: bool = Field(False, description="disable the undo journal, and the tools undo and recent_changes")
    undo_dir: Path | None = option(
        None, "directory for the undo journal (default: in the user's state directory)", "DIR"
    )
    undo_size: int = option(256, "size of the undo journal in megabytes; the oldest changes are dropped", "MB")
    undo_days: int = option(7, "days until a change is dropped from the undo journal", "DAYS")
    confirm: bool = Field(False, description="ask the user before each change")
    client_roots: bool = Field(
        False, description="limit a client that declares roots to the parts of DIR inside its roots"
    )

    @field_validator("roots", "root", mode="before")
    @classmethod
    def _require_names(cls, roots: Any) -> Any:
        # An empty path, as from an unset shell variable, would mean the working directory.
        if not isinstance(roots, list):
            return roots
        if any(root in ("", ":ro", ":rw") for root in roots):
            raise ValueError("a directory name is empty")
        # A Path drops a leading "./", after which the "~" would mean a home directory.
        starts = (f".{os.sep}~", f".{os.altsep or os.sep}~")
        return [
            os.path.abspath(root) if isinstance(root, str) and root.startswith(starts) else root  # noqa: PTH100
            for root in roots
        ]

    @field_validator("root")
    @classmethod
    def _require_modes(cls, roots: list[str]) -> list[str]:
        for root in roots:
            path, _, mode = root.rpartition(":")
            if path and mode not in _MODES and not _is_usable(Path(root)) and _is_usable(Path(path)):
                raise ValueError(f"{root} is not a directory; write DIR, DIR:ro or DIR:rw")
        return roots

    @field_validator("deny", "allow")
    @classmethod
    def _require_globs(cls, globs: list[str]) -> list[str]:
        try:
            Denylist(globs)
        except FilesError as error:
            raise ValueError(error.reason) from None
        return globs

    @field_validator("undo_size", "undo_days")
    @classmethod
    def _require_positive(cls, number: int) -> int:
        if number < 1:
            raise ValueError("should be at least 1")
        return number

    @model_validator(mode="after")
    def _require_libraries(self) -> Self:
        # The libraries are imported when they are first used, which would be too late for an error.
        if any(
            find_spec(library) is None
            for library in ("chardet", "content_types", "filelock", "pathspec", "re2", "watchfiles")
        ):
            raise ValueError(missing_extra_message("filesystem"))
        return self

    @model_validator(mode="after")
    def _require_directories(self) -> Self:
        if not self.directories:
            raise ValueError("specify at least one DIR that may be read")
        if not any(_is_usable(path) for path, _ in self.directories):
            raise FieldError("roots" if self.roots else "root", f"{self.directories[0][0]} is not a directory")
        return self

    @cached_property
    def directories(self) -> list[tuple[Path, bool]]:
        """Each allowed directory, and True if files may be changed there."""
        listed = [(path, self.allow_write) for path in self.roots]
        for root in self.root:
            path, _, mode = root.rpartition(":")
            listed.append((Path(path), _MODES[mode]) if mode in _MODES else (Path(root), self.allow_write))
        return listed

    @property
    def within(self) -> tuple[Path, ...] | None:
        """The directories to which a principal's files are limited; None for no limit."""
        return self._within

    def narrow(self, narrowing: Narrowing) -> Self:
        """Return these settings limited to the given directories, each with its current permission. Raises ValueError
        for a directory outside the allowed ones.
        """
        if self.client_roots:
            raise ValueError("roots: can't be combined with --client-roots")
        settings = self.model_copy()
        settings.limit_to([resolve_within(root, [path for path, _ in self.directories]) for root in narrowing.roots])
        return settings

    def limit_to(self, directories: Sequence[Path]) -> None:
        """Limit the files to these directories."""
        self._within = tuple(directories)

    @property
    def denylist(self) -> Denylist:
        """Patterns that are denied in all directories."""
        # Undo journals are denied as well, since they may hold the contents of denied files.
        journals = {journal for journal in (_default_journal(), self._journal) if journal is not None}
        globs: list[str] = []
        for journal, (directory, _) in product(journals, self.directories):
            path, root = (Path(os.path.realpath(link)) for link in (journal, expand_home(directory)))
            if path != root and path.is_relative_to(root):
                globs.append("./" + re.sub(r"([][*?{},\\])", r"\\\1", path.relative_to(root).as_posix()))
        return Denylist([*self.deny, *globs], self.allow)

    @property
    def history(self) -> "recording.HistoryOptions | None":
        """The journal of changes; None if changes are not to be recorded."""
        if self.no_undo or not self.writes:
            return None
        return recording.HistoryOptions(self._journal, self.undo_size * _MEGABYTE, self.undo_days)

    @property
    def _journal(self) -> Path | None:
        return _default_journal() if self.undo_dir is None else expand_home(self.undo_dir)

    @cached_property
    def writes(self) -> bool:
        """True if files may be changed in at least one directory."""
        return any(writable for _, writable in self.directories)


def _is_usable(path: Path) -> bool:
    """Return True if there is a directory that this process can enter."""
    path = expand_home(path)
    return os.access(path, os.X_OK) and path.is_dir()


def _default_journal() -> Path | None:
    # Without a home directory there is no journal; each response says so.
    with suppress(ValueError):
        return Path(state_folder(this_machine())) / "undo"
    return None
