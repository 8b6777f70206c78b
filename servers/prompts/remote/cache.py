"""Caches libraries from git or packages. The files of each commit are a directory, which replaces that of the last
one.

    CACHE/NAME-KEY/tree/state.json               the commit, its files, and the files that were left out
    CACHE/NAME-KEY/tree/files/REPOSITORY/FOLDER  the library
    CACHE/NAME-KEY/plugins/                      caches like this one, of the plugins in its marketplace file

Processes that share a cache need no lock: each writes into a directory of its own, and then renames it to `tree`.
"""

import json
import os
import shutil
import sys
import tempfile
import time
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from threading import Event
from typing import Any

from shared.text import format_count

from ..errors import Problem, PromptError
from ..format.skills import MAX_BYTES
from ..library.folder import MAX_TOTAL_BYTES, check_path
from .address import MARKETPLACE, Address, Package
from .git import Blob, Git
from .package import Source, open_package
from .plugins import Plugin, parse_marketplace

_SCRATCH_PREFIX = "fetch-"
_ABANDONED_SECONDS = 3_600.0
"""A temporary directory of a fetch that is older than this is deleted: its process was killed."""
_MAX_FILES = 50_000
_MAX_LISTED = 1_000
"""Maximum number of omitted files that are reported."""
_MAX_NAME, _MAX_PATH = 255, 700
"""Maximum lengths in bytes of a name, and of a path in the library, that every system supports."""
_LFS = b"version https://git-lfs.github.com/spec/"
_UNSUPPORTED_MODES = {
    "120000": "it is a link, and links are not followed",
    "160000": "it is a submodule, which is not fetched",
    "compressed": "its compression method is not supported",
    "encrypted": "it is encrypted",
}
PLUGINS = "git-plugins"
"""The folder in a library into which plugins from other repositories are copied."""


def find_cache() -> Path:
    """Return the directory for fetched libraries, which is in the system's directory for caches."""
    home = Path.home()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        configured = Path(os.environ.get("XDG_CACHE_HOME") or "")
        base = configured if configured.is_absolute() else home / ".cache"
    return base / "mcp-server-bundle" / "prompts"


class Checkout:
    """The library at an address, as it was at the last fetch. Only one thread at a time may fetch it."""

    def __init__(self, address: Address | Package, cache: Path | None = None, has_plugins: bool = True) -> None:
        """`has_plugins` is False for a plugin: a marketplace file in it is then ignored."""
        self.address = address
        self._has_plugins = has_plugins
        key = sha256(str(address).encode()).hexdigest()[:16]
        self._home = (cache or find_cache()) / f"{address.repository}-{key}"
        self._tree = self._home / "tree"
        self.root = self._tree / "files" / address.repository / address.folder
        """The folder with the library; it does not exist before the first fetch."""
        self.failure = ""
        """The reason why the last fetch failed; empty if it succeeded."""
        self._plugin_problems: list[Problem] = []
        """The reasons why plugins could not be fetched."""
        self._state: dict[str, Any] | None = None

    @property
    def commit(self) -> str | None:
        """The commit that was in the cache at the last `load` or `update`; None if there was no complete one."""
        return None if self._state is None else str(self._state["commit"])

    @property
    def shown(self) -> str:
        """The address as clients see it."""
        return self.address.shown

    def load(self) -> None:
        """Read the state of the cache. If a file is missing or has another size, the cache counts as empty.
        Blocks."""
        loaded = None
        with suppress(OSError, ValueError, LookupError, TypeError, AttributeError):
            state = json.loads((self._tree / "state.json").read_bytes())
            is_complete = all((self.root / path).stat().st_size == size for path, size in state["files"].items())
            if is_complete and state["commit"] and isinstance(state["left_out"], list):
                loaded = state
        # Assign the state only at the end, since other threads use the previous one.
        self._state = loaded

    def problems(self) -> list[Problem]:
        """Return the reason why the last fetch failed, if it did, and the files and plugins that were left out."""
        listed = [] if self._state is None else self._state["left_out"]
        left_out = [*(Problem(path, None, reason) for path, reason in listed), *self._plugin_problems]
        if not self.failure:
            return left_out
        status = "nothing has been fetched yet" if self.commit is None else f"commit {self.commit[:12]} is served"
        return [Problem("", None, f"{self.address.shown}: {self.failure}; {status}"), *left_out]

    def update(self, stop: Event, timeout: float) -> bool:
        """Fetch the current commit of the reference. Return True if it has changed. Blocks for at most `timeout`
        seconds, or until `stop` is set. After a failure, raises PromptError and adds it to the problems; the cache
        stays as it was."""
        try:
            changed = self._update(stop, timeout)
        except (PromptError, OSError) as error:
            self.load()
            self.failure = error.reason if isinstance(error, PromptError) else "the cache can't be written"
            raise PromptError("not_fetched", f"{self.address}: {self.failure}") from None
        self.failure = ""
        return changed

    def _update(self, stop: Event, timeout: float) -> bool:
        self._home.mkdir(mode=0o700, parents=True, exist_ok=True)
        for abandoned in self._home.glob(f"{_SCRATCH_PREFIX}*"):
            with suppress(OSError):
                if time.time() - abandoned.stat().st_mtime > _ABANDONED_SECONDS:
                    shutil.rmtree(abandoned, ignore_errors=True)
        self.load()
        before, deadline = self.commit, time.monotonic() + timeout
        with tempfile.TemporaryDirectory(
            prefix=_SCRATCH_PREFIX, dir=self._home, ignore_cleanup_errors=True
        ) as folder:
            scratch = Path(folder)
            source = (
                open_package(self.address)
                if isinstance(self.address, Package)
                else Git(scratch, self.address, stop, timeout)
            )
            commit = source.find_commit()
            tree = self._tree if commit == before else scratch / "tree"
            state = (self._state or {}) if commit == before else self._write(tree, source, commit)
            plugins = self._fetch_plugins(tree, stop, deadline)
            if commit == before:
                if {name: plugin.commit for name, plugin in plugins.items()} == state.get("plugins", {}):
                    return False
                state = self._write(scratch / "tree", source, commit)
            self._add_plugins(scratch / "tree", state, plugins)
            with suppress(FileNotFoundError):
                self._tree.rename(scratch / "before")
            try:
                (scratch / "tree").rename(self._tree)
            except OSError:
                # If there is a tree, another process was faster, so use its tree.
                if not self._tree.exists():
                    raise
        self.load()
        return True

    def _write(self, tree: Path, source: Source, commit: str) -> dict[str, Any]:
        """Write the files of a commit, and return the state to save. Raises PromptError if there are too many files,
        or they are too large."""
        source.fetch(commit)
        blobs, left_out = source.files(commit), dict[str, str]()
        suggestion = "Name a subdirectory of the repository." if isinstance(self.address, Address) else ""
        if len(blobs) > _MAX_FILES:
            raise PromptError("too_large", f"the library has more than {_MAX_FILES:,} files", suggestion)
        chosen: list[Blob] = []
        for blob in blobs:
            refusal, encoded = check_path(blob.path), blob.path.encode(errors="surrogatepass")
            if blob.mode in _UNSUPPORTED_MODES:
                left_out[blob.path] = _UNSUPPORTED_MODES[blob.mode]
            elif refusal is not None or not blob.path.isprintable():
                left_out[blob.path] = f"its path {refusal or 'is not plain text'}"
            elif len(encoded) > _MAX_PATH or any(len(name) > _MAX_NAME for name in encoded.split(b"/")):
                left_out[blob.path] = "its path is too long"
            elif blob.size > MAX_BYTES:
                left_out[blob.path] = f"it has more than {MAX_BYTES:,} bytes"
            else:
                chosen.append(blob)
        if sum(blob.size for blob in chosen) > MAX_TOTAL_BYTES:
            reason = f"the files of the library have more than {MAX_TOTAL_BYTES:,} bytes in total"
            raise PromptError("too_large", reason, suggestion)
        root = self._find_root(tree)
        root.mkdir(mode=0o700, parents=True)
        written: dict[str, int] = {}
        for blob, data in zip(chosen, source.read(chosen), strict=True):
            reason = _write_file(root / blob.path, data, executable=blob.mode == "100755")
            if reason:
                left_out[blob.path] = reason
            else:
                written[blob.path] = blob.size
        return {"commit": commit, "files": written, "left_out": sorted(left_out.items())}

    def _find_root(self, tree: Path) -> Path:
        return tree / self.root.relative_to(self._tree)

    def _fetch_plugins(self, tree: Path, stop: Event, deadline: float) -> "dict[str, Checkout]":
        """Fetch the plugins in other repositories, and return the available ones by name. Add a problem for each of
        the others."""
        self._plugin_problems = []
        plugins: dict[str, Checkout] = {}
        root, listed = self._find_root(tree), list[Plugin]()
        if self._has_plugins and (root / MARKETPLACE).is_file():
            base = self.address.root if isinstance(self.address, Package) and self.address.is_marketplace else root
            try:
                listed = parse_marketplace((root / MARKETPLACE).read_bytes(), base, self.address.scheme)
            except PromptError as error:
                self._plugin_problems.append(Problem(MARKETPLACE, None, error.reason))
        for plugin in listed:
            failure = plugin.reason
            if plugin.address is not None:
                checkout = Checkout(plugin.address, self._home / "plugins", has_plugins=False)
                checkout.load()
                try:
                    checkout.update(stop, max(0.0, deadline - time.monotonic()))
                except PromptError:
                    failure = checkout.failure
                if checkout.commit is not None:
                    plugins[plugin.name] = checkout
            if failure:
                self._plugin_problems.append(Problem(MARKETPLACE, None, f"plugin {plugin.name!r}: {failure}"))
        return plugins

    def _add_plugins(self, tree: Path, state: dict[str, Any], plugins: "dict[str, Checkout]") -> None:
        """Copy the plugins into the library in `tree`, and save its state. A plugin that would exceed the limits of
        the library is left out and reported."""
        root, files, left_out = self._find_root(tree), state["files"], list(state["left_out"])
        for name, checkout in plugins.items():
            plugin = checkout._state or {}  # noqa: SLF001 - of the same class
            sizes = {f"{PLUGINS}/{name}/{path}": size for path, size in plugin["files"].items()}
            if len(files) + len(sizes) > _MAX_FILES or sum((*files.values(), *sizes.values())) > MAX_TOTAL_BYTES:
                left_out.append((f"{PLUGINS}/{name}", "there is no room for this plugin in the library"))
                continue
            for path in plugin["files"]:
                target = root / PLUGINS / name / path
                target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                shutil.copy(checkout.root / path, target)
            files |= sizes
            left_out += [(f"{PLUGINS}/{name}/{path}", reason) for path, reason in plugin["left_out"]]
        named = left_out[:_MAX_LISTED]
        if len(left_out) > len(named):
            named.append(("", f"{format_count(len(left_out) - len(named), 'more file')} left out"))
        commits = {name: checkout.commit for name, checkout in plugins.items()}
        saved = {**state, "files": files, "left_out": named, "plugins": commits}
        (tree / "state.json").write_text(json.dumps(saved), encoding="ascii")
        # Delete the caches of plugins that are no longer in the marketplace.
        used = {checkout._home.name for checkout in plugins.values()}  # noqa: SLF001
        for home in (self._home / "plugins").glob("*"):
            if home.name not in used:
                shutil.rmtree(home, ignore_errors=True)


def _write_file(path: Path, data: bytes, executable: bool) -> str:
    """Write a file. Return the reason if it can't be written, or else ""."""
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
