"""Cache of a library in git: a directory that each commit replaces as a whole.

    CACHE/NAME-KEY/tree/state.json               the commit, its files, and what of it was left out
    CACHE/NAME-KEY/tree/files/REPOSITORY/FOLDER  the library

Processes that share a cache need no lock: each writes to its own directory, and renames that.
"""

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from threading import Event
from typing import Any

from servers.prompts.errors import Problem, PromptError
from servers.prompts.format.skills import MOST_BYTES
from servers.prompts.library.folder import MOST_TOTAL, check_path
from servers.prompts.remote.address import Address
from servers.prompts.remote.git import Blob, Git
from shared.text import format_count

_SCRATCH = "fetch-"
_ABANDONED_SECONDS = 3_600.0
_MOST_FILES = 50_000
_MOST_NAMED = 1_000
"""The limit of omitted files that are named."""
_LONGEST_NAME, _LONGEST_PATH = 255, 700
"""Bytes that every system supports, for a path together with that of the cache."""
_LFS = b"version https://git-lfs.github.com/spec/"
_NO_FILE = {"120000": "it is a link, and links are not followed", "160000": "it is a submodule, which is not fetched"}


def find_cache() -> Path:
    """Return the directory for fetched libraries: in the system's directory for caches."""
    home = Path.home()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        named = Path(os.environ.get("XDG_CACHE_HOME") or "")
        base = named if named.is_absolute() else home / ".cache"
    return base / "mcp-server-bundle" / "prompts"


class Checkout:
    """The library at an address, in the state of the last fetch. For one thread at a time."""

    def __init__(self, address: Address, cache: Path | None = None) -> None:
        self.address = address
        key = sha256(str(address).encode()).hexdigest()[:16]
        self._home = (cache or find_cache()) / f"{address.repository}-{key}"
        self._tree = self._home / "tree"
        self.root = self._tree / "files" / address.repository / address.folder
        """The folder with the library; it does not exist before the first fetch."""
        self.failure = ""
        """The reason why the last fetch failed; else empty."""
        self._state: dict[str, Any] | None = None

    @property
    def commit(self) -> str | None:
        """The commit that was completely there at the last `load` or `update`; None if there was none."""
        return None if self._state is None else str(self._state["commit"])

    @property
    def shown(self) -> str:
        """The address for clients."""
        return self.address.shown

    def load(self) -> None:
        """Read the state of the cache. Blocks."""
        self._state = self._read_state()

    def problems(self) -> list[Problem]:
        """Return the reason why the last fetch failed, and the files of the commit that were left out."""
        listed = [] if self._state is None else self._state["left_out"]
        left_out = [Problem(path, None, reason) for path, reason in listed]
        if not self.failure:
            return left_out
        status = "nothing of it is there yet" if self.commit is None else f"commit {self.commit[:12]} is served"
        return [Problem("", None, f"{self.address.shown}: {self.failure}; {status}"), *left_out]

    def update(self, stop: Event, seconds: float) -> bool:
        """Fetch the current commit of the reference; return True if it has changed. Blocks for at most so many
        `seconds`. After a failure the cache is unchanged, and the failure is among the problems. Raises
        PromptError."""
        try:
            changed = self._update(stop, seconds)
        except (PromptError, OSError) as error:
            self.load()
            self.failure = error.reason if isinstance(error, PromptError) else "the cache can't be written"
            raise PromptError("not_fetched", f"{self.address}: {self.failure}") from None
        self.failure = ""
        return changed

    def _update(self, stop: Event, seconds: float) -> bool:
        self._home.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._discard_abandoned()
        self.load()
        before = self.commit
        if before is not None and before == self.address.commit:
            return False
        with tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=self._home, ignore_cleanup_errors=True) as folder:
            scratch = Path(folder)
            git = Git(scratch, self.address, stop, seconds)
            commit = git.find_commit()
            if commit == before:
                return False
            git.fetch(commit)
            self._write(scratch / "tree", git, commit)
            self._put_in_place(scratch)
        self.load()
        return True

    def _write(self, tree: Path, git: Git, commit: str) -> None:
        """Write the files of a commit, and its state. Raises PromptError if they are too many or too large."""
        blobs, left_out = git.files(commit), dict[str, str]()
        if len(blobs) > _MOST_FILES:
            reason = f"the library has more than {_MOST_FILES:,} files"
            raise PromptError("too_large", reason, "Name a subdirectory of the repository.")
        chosen = list(_choose(blobs, left_out))
        if sum(blob.size for blob in chosen) > MOST_TOTAL:
            reason = f"the files of the library have more than {MOST_TOTAL:,} bytes together"
            raise PromptError("too_large", reason, "Name a subdirectory of the repository.")
        root = tree / self.root.relative_to(self._tree)
        root.mkdir(mode=0o700, parents=True)
        written: dict[str, int] = {}
        for blob, data in zip(chosen, git.read(chosen), strict=True):
            reason = _write_file(root / blob.path, data, executable=blob.mode == "100755")
            if reason:
                left_out[blob.path] = reason
            else:
                written[blob.path] = blob.size
        named = sorted(left_out.items())[:_MOST_NAMED]
        if len(left_out) > len(named):
            named.append(("", f"{format_count(len(left_out) - len(named), 'more file')} left out"))
        state = {"commit": commit, "files": written, "left_out": named}
        (tree / "state.json").write_text(json.dumps(state), encoding="ascii")

    def _put_in_place(self, scratch: Path) -> None:
        with suppress(FileNotFoundError):
            self._tree.rename(scratch / "before")
        try:
            (scratch / "tree").rename(self._tree)
        except OSError:
            # Another process was faster, which is just as good; otherwise the tree is missing.
            if not self._tree.exists():
                raise

    def _read_state(self) -> dict[str, Any] | None:
        """Return the state of the commit in the cache; None if a file of it is missing or damaged."""
        try:
            state = json.loads((self._tree / "state.json").read_bytes())
            whole = all((self.root / path).stat().st_size == size for path, size in state["files"].items())
            return state if whole and state["commit"] and isinstance(state["left_out"], list) else None
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return None

    def _discard_abandoned(self) -> None:
        for scratch in self._home.glob(f"{_SCRATCH}*"):
            with suppress(OSError):
                if time.time() - scratch.stat().st_mtime > _ABANDONED_SECONDS:
                    shutil.rmtree(scratch, ignore_errors=True)


def _choose(blobs: list[Blob], left_out: dict[str, str]) -> Iterator[Blob]:
    """Yield the files that can be written on any system."""
    for blob in blobs:
        refusal = check_path(blob.path)
        if blob.mode in _NO_FILE:
            left_out[blob.path] = _NO_FILE[blob.mode]
        elif refusal is not None or not blob.path.isprintable():
            left_out[blob.path] = f"its path {refusal or 'is not plain text'}"
        elif _is_too_long(blob.path):
            left_out[blob.path] = "its path is too long"
        elif blob.size > MOST_BYTES:
            left_out[blob.path] = f"it has more than {MOST_BYTES:,} bytes"
        else:
            yield blob


def _is_too_long(path: str) -> bool:
    encoded = path.encode()
    return len(encoded) > _LONGEST_PATH or any(len(name) > _LONGEST_NAME for name in encoded.split(b"/"))


def _write_file(path: Path, data: bytes, executable: bool) -> str:
    """Write a file; return the reason why it can't be written, else ""."""
    if data.startswith(_LFS):
        return "its contents are in Git LFS, which is not fetched"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with path.open("xb") as file:
            file.write(data)
        if executable:
            path.chmod(0o700)
    except (FileExistsError, NotADirectoryError):
        return "another file has the same name on this system"
    return ""
