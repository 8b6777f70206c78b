"""Parses the addresses of libraries that are not directories: git repositories, and packages (zip archives and
marketplace files on this machine). The address of a repository has pip's format (pip's documentation, VCS Support):

    git+https://github.com/team/prompts.git@v2#subdirectory=reviews

The reference, here v2, is a branch, a tag or a full commit hash; without one, the default branch is used.
"""

import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

MARKETPLACE = ".claude-plugin/marketplace.json"
"""The path of the file in which Claude Code looks for a plugin marketplace."""
_MARKETPLACE_PATH = Path(MARKETPLACE)
SCHEMES = ("https", "ssh", "git", "file")
FORM = "git+https://HOST/REPOSITORY@REF#subdirectory=FOLDER"
_ARCHIVE_EXTENSIONS = (".zip", ".skill")
# Patterns are compiled when they are first used: most servers have no such address.
_HOST = r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*"
_USER = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
# A subset of what `git check-ref-format` allows: no options, ranges or patterns.
_REF = r"(?!.*(?:\.\.|//|@\{|\.lock(?:/|$)|/\.|[./]$))[A-Za-z0-9_][A-Za-z0-9_./@+-]{0,199}"
_COMMIT = r"[0-9a-f]{40}|[0-9a-f]{64}"
_UNSAFE = r"[\x00-\x20\x7f\\]"
_SUBDIRECTORY = "subdirectory="


class Address(NamedTuple):
    """A library in a git repository."""

    url: str
    """The URL that is passed to git. It never contains a password."""
    ref: str = ""
    """The reference; "" is the default branch."""
    folder: str = ""
    """The folder in the repository, with / between names; "" is the whole repository."""

    def __str__(self) -> str:
        ref = f"@{self.ref}" if self.ref else ""
        return f"git+{self.url}{ref}" + (f"#{_SUBDIRECTORY}{self.folder}" if self.folder else "")

    @property
    def shown(self) -> str:
        """The address as clients see it, without directories of this machine."""
        return str(self if self.scheme != "file" else self._replace(url=f"file:///.../{self.repository}"))

    @property
    def scheme(self) -> str:
        """The scheme of the URL, such as https."""
        return self.url.partition(":")[0]

    @property
    def repository(self) -> str:
        """The name of the repository."""
        name = self.url.rstrip("/").rpartition("/")[2].removesuffix(".git")
        return _make_name(name)

    @property
    def commit(self) -> str | None:
        """The commit, if the reference is a commit hash, so that the library never changes; otherwise None."""
        return self.ref if re.fullmatch(_COMMIT, self.ref) else None


class Package(NamedTuple):
    """A library in one file on this machine: a zip archive, or a marketplace with plugins in git repositories.

    `folder`, `commit` and `scheme` mean the same as in `Address`, and are always the defaults.
    """

    path: Path
    folder: str = ""
    commit: str | None = None
    scheme: str = "file"

    def __str__(self) -> str:
        return str(self.path.absolute())

    @property
    def shown(self) -> str:
        """The name of the file, which clients see, without directories of this machine."""
        return self.path.name

    @property
    def repository(self) -> str:
        """The name of the library."""
        return _make_name(self.root.name if self.is_marketplace else self.path.stem)

    @property
    def is_marketplace(self) -> bool:
        """True if it is a marketplace file, which lists plugins but contains no prompts."""
        return self.path.name == _MARKETPLACE_PATH.name

    @property
    def root(self) -> Path:
        """The folder to which paths in a marketplace file are relative."""
        parent = self.path.absolute().parent
        return parent.parent if parent.name == _MARKETPLACE_PATH.parent.name else parent


def is_package(path: Path) -> bool:
    """Return True if a path belongs to a package rather than a directory."""
    return (path.suffix.lower() in _ARCHIVE_EXTENSIONS or path.name == _MARKETPLACE_PATH.name) and not path.is_dir()


def is_address(text: str) -> bool:
    """Return True if a string is the address of a git repository, and not a path."""
    return text.startswith("git+")


def parse_address(text: str) -> Address:
    """Parse an address. Raises ValueError; its message contains no secret from the address."""
    try:
        parts = urlsplit(text.removeprefix("git+"))
        _ = parts.port
    except ValueError:
        raise ValueError(f"the address of a git library must have the form {FORM}") from None
    if not is_address(text) or parts.scheme not in SCHEMES or parts.query or re.search(_UNSAFE, text):
        raise ValueError(
            f"the address of a git library must have the form {FORM}, with one of these schemes: {', '.join(SCHEMES)}"
        )
    # A password would appear in configurations, logs and process lists.
    if parts.password or (parts.username and parts.scheme != "ssh"):
        reason = "contains a user name or password: remove it, and use git's credential helper"
        raise ValueError(f"the address of a library {reason}")
    path, ref = parts.path.rsplit("@", 1) if "@" in parts.path else (parts.path, None)
    if ref is not None and not re.fullmatch(_REF, ref):
        raise ValueError(f"{ref[:200]!r} is not the name of a branch, a tag or a commit")
    scheme, host, user = parts.scheme, parts.hostname or "", parts.username or ""
    if scheme == "file" and (host or not path.startswith("/")):
        raise ValueError("a library on this machine is written as git+file:///PATH, with its absolute path")
    if scheme != "file" and not re.fullmatch(_HOST, host):
        raise ValueError(f"{host[:100]!r} is not a host name")
    if user and not re.fullmatch(_USER, user):
        raise ValueError(f"{user[:100]!r} is not a user name")
    if len(path) < 2:
        raise ValueError("the address of a library names no repository")
    folder = parts.fragment.removeprefix(_SUBDIRECTORY).strip("/")
    if parts.fragment and (not parts.fragment.startswith(_SUBDIRECTORY) or not folder):
        raise ValueError(f"after #, only {_SUBDIRECTORY}FOLDER is allowed")
    if folder and any(name in ("", ".", "..") for name in folder.split("/")):
        raise ValueError(f"{folder[:200]!r} is not a folder within the repository")
    return Address(f"{scheme}://{parts.netloc if scheme != 'file' else ''}{path}", ref or "", folder)


def _make_name(text: str) -> str:
    """Return the text as a name that the directory of a library can have."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", text).strip(".") or "repository"
