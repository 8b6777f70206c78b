"""Records of calls to the file system: synced files, and permissions of new files."""

import os
import stat
from typing import Any

import pytest


def synced(monkeypatch: pytest.MonkeyPatch) -> list[int | list[str]]:
    """Records syncs from now on, in order: the size of a file in bytes, the names in a directory."""
    seen: list[int | list[str]] = []
    sync = os.fsync

    def recording(descriptor: int) -> None:
        sync(descriptor)
        found = os.fstat(descriptor)
        seen.append(sorted(os.listdir(descriptor)) if stat.S_ISDIR(found.st_mode) else found.st_size)

    monkeypatch.setattr(os, "fsync", recording)
    return seen


def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Records the permissions of each new file from now on, at the moment of its creation."""
    seen: list[int] = []
    plain = os.open

    def recording(path: Any, flags: int, *mode: int, **more: Any) -> int:
        descriptor = plain(path, flags, *mode, **more)
        if flags & os.O_CREAT:
            seen.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        return descriptor

    monkeypatch.setattr(os, "open", recording)
    return seen
