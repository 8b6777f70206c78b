"""Reads the files of packages. The cache writes them by the same rules for names, links and sizes as files from
git."""

import hashlib
import stat
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

from ..errors import PromptError
from ..format.forms import is_manifest
from .address import MARKETPLACE, Package
from .git import Blob
from .plugins import MAX_MANIFEST_BYTES

_MAX_ARCHIVE_BYTES = 64_000_000
"""Maximum size of an archive, in bytes."""
_MAX_DIRECTORY_BYTES = 16_000_000
"""Maximum size of an archive's list of files, in bytes."""
_END_SIGNATURE, _END_BYTES, _MAX_COMMENT = b"PK\5\6", 22, 65_535
"""The first bytes and the size of the record at the end of an archive, and the maximum size of the comment after it
(PKWARE APPNOTE, 4.3.16)."""
_FOLDERS_OF_PROMPTS = frozenset({"agents", "commands", "prompts", "skills"})


class Source(Protocol):
    """The source of the files of a library: a git repository or a package."""

    def find_commit(self) -> str:
        """Return the current commit, or for a package a hash that changes with its files. Raises PromptError."""

    def fetch(self, commit: str) -> None:
        """Make the files of the commit available to `files` and `read`. Raises PromptError."""

    def files(self, commit: str) -> list[Blob]:
        """Return the files of the commit, which must have been fetched. Raises PromptError."""

    def read(self, blobs: Sequence[Blob]) -> Iterator[bytes]:
        """Yield the contents of the files, in the order of `blobs`. Raises PromptError."""


def open_package(package: Package) -> Source:
    """Return the source of a package's files."""
    return _Marketplace(package.path) if package.is_marketplace else _Archive(package.path)


class _Archive:
    """A zip archive."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._top_folder = ""
        """The name of the only folder at the top of the archive, with a slash, which is removed from the paths.
        Archives of repositories have such a folder. Empty if there is none, or if its name says how to read the
        files."""

    def find_commit(self) -> str:
        return _hash_file(self._path, _MAX_ARCHIVE_BYTES)

    def fetch(self, commit: str) -> None:
        """Do nothing, since the file is on this machine."""

    def files(self, commit: str) -> list[Blob]:
        with _open_archive(self._path) as archive:
            listed = [info for info in archive.infolist() if not info.is_dir()]
        paths = [info.filename for info in listed]
        tops = {path.partition("/")[0] for path in paths}
        self._top_folder = ""
        if len(tops) == 1 and all("/" in path for path in paths):
            (top,) = tops
            has_meaning = (
                top in _FOLDERS_OF_PROMPTS
                or top.startswith((".", "_"))
                or any(is_manifest(path.removeprefix(f"{top}/")) for path in paths)
            )
            self._top_folder = "" if has_meaning else f"{top}/"
        blobs: list[Blob] = []
        for info in listed:
            # Determine the mode as in a git tree, or the reason why the file can't be unpacked.
            attributes = info.external_attr >> 16
            mode = "100755" if attributes & stat.S_IXUSR else "100644"
            if stat.S_ISLNK(attributes):
                mode = "120000"
            elif info.flag_bits & 1:
                mode = "encrypted"
            elif info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
                mode = "compressed"
            path = info.filename.removeprefix(self._top_folder)
            blobs.append(Blob(path, mode, info.filename, info.file_size))
        return blobs

    def read(self, blobs: Sequence[Blob]) -> Iterator[bytes]:
        with _open_archive(self._path) as archive:
            for blob in blobs:
                data = _unpack(archive, blob)
                if len(data) != blob.size:
                    raise PromptError("not_fetched", f"the package is damaged at {blob.path[:200]!r}")
                yield data


def _unpack(archive: ZipFile, blob: Blob) -> bytes:
    """Return the contents of a file, but at most one byte more than its declared size."""
    try:
        with archive.open(blob.id) as file:
            return file.read(blob.size + 1)
    except (BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError):
        raise PromptError("not_fetched", f"the package is damaged at {blob.path[:200]!r}") from None


def _open_archive(path: Path) -> ZipFile:
    """Open an archive. Raises PromptError if it is not one, or has too many files."""
    try:
        with path.open("rb") as file:
            # `ZipFile` reads the whole list of files, so check the size of the list before.
            size = file.seek(0, 2)
            file.seek(max(0, size - _END_BYTES - _MAX_COMMENT))
            end = file.read()
            start = end.rfind(_END_SIGNATURE)
            if start < 0:
                raise BadZipFile
            if int.from_bytes(end[start + 12 : start + 16], "little") > _MAX_DIRECTORY_BYTES:
                raise PromptError("too_large", "the package has too many files")
        return ZipFile(path)
    except (BadZipFile, OSError, ValueError, NotImplementedError):
        raise PromptError("not_fetched", "it is not a zip archive that can be read") from None


class _Marketplace:
    """Only a marketplace file. Files in its folder are served from the folder, and are not part of this package."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def find_commit(self) -> str:
        return _hash_file(self._path, MAX_MANIFEST_BYTES)

    def fetch(self, commit: str) -> None:
        """Do nothing, since the file is on this machine."""

    def files(self, commit: str) -> list[Blob]:
        return [Blob(MARKETPLACE, "100644", "", self._path.stat().st_size)]

    def read(self, blobs: Sequence[Blob]) -> Iterator[bytes]:
        return (self._path.read_bytes() for _ in blobs)


def _hash_file(path: Path, max_bytes: int) -> str:
    try:
        if path.stat().st_size > max_bytes:
            raise PromptError("too_large", f"the file has more than {max_bytes:,} bytes")
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        raise PromptError("not_fetched", "there is no such file, or it can't be read") from None
