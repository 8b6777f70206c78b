"""What reaches the disk, and who may read it meanwhile: written down while the system does it."""

import os
import stat
from typing import Any

import pytest


def synced(monkeypatch: pytest.MonkeyPatch) -> list[int | list[str]]:
    """What is synced from now on, in its order: of a file how many bytes it has, of a directory the names in it."""
    seen: list[int | list[str]] = []
    sync = os.fsync

    def recording(descriptor: int) -> None:
        sync(descriptor)
        found = os.fstat(descriptor)
        seen.append(sorted(os.listdir(descriptor)) if stat.S_ISDIR(found.st_mode) else found.st_size)

    monkeypatch.setattr(os, "fsync", recording)
    return seen


def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The permissions of each file that is made from now on, at the moment when it is."""
    seen: list[int] = []
    plain = os.open

    def recording(path: Any, flags: int, *mode: int, **more: Any) -> int:
        descriptor = plain(path, flags, *mode, **more)
        if flags & os.O_CREAT:
            seen.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        return descriptor

    monkeypatch.setattr(os, "open", recording)
    return seen
