"""The machine: its size, what is installed on it, what a process holds in memory, and who gets which core."""

import os
import platform
import shutil
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Self

from tests.checks.benchmarks import fetch_peers, peers, prompts_peers, sqlite_peers
from tests.npm import Unavailable

MIB = 1_048_576
PACKAGES = ("anyio", "httptools", "mcp", "pydantic", "pydantic_core", "starlette", "uvicorn", "uvloop")


def describe() -> dict[str, Any]:
    """The size of the machine and the versions of what takes part."""
    return {
        "cores": len(cores()),
        "memory, GiB": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1_024 / MIB, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "versions": {"Python": platform.python_version(), **_packages(), **_programs(), **_servers()},
    }


def _packages() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _programs() -> dict[str, str]:
    found = {}
    with suppress(Unavailable):
        found["Node"] = _said([str(peers.find_node()), "--version"]).removeprefix("v")
        found[peers.NPM_PACKAGE] = peers.npm_version()
    if (wrk := shutil.which("wrk")) is not None:
        found["wrk"] = _said([wrk, "--version"]).split()[1]
    return found


def _servers() -> dict[str, str]:
    found = {"SQLite": sqlite3.sqlite_version}
    for one in (sqlite_peers, fetch_peers, prompts_peers):
        found.update(one.versions())
    return found


def _said(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False).stdout.strip()


def resident(pid: int) -> float:
    """What a process holds in memory, in MiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / MIB


def peak(pid: int) -> float:
    """The most that a process has held in memory, in MiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1_024


def busy_seconds(pid: int) -> float:
    """The CPU time that a process has taken, or 0 where it has ended."""
    with suppress(FileNotFoundError, ProcessLookupError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def family(pid: int) -> list[int]:
    """A process and all that it has started, and they in turn."""
    parents: dict[int, list[int]] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            # The name, which stands in brackets before the parent, may hold anything.
            parent = int(file.read_text().rpartition(")")[2].split()[1])
            parents.setdefault(parent, []).append(int(file.parent.name))
    found = [pid]
    for one in found:
        found += parents.get(one, [])
    return found


def held(pid: int) -> float:
    """What a process and all that it has started hold in memory, in MiB; what they share is counted once."""
    total = 0
    for one in family(pid):
        with suppress(FileNotFoundError, ProcessLookupError):
            rollup = Path(f"/proc/{one}/smaps_rollup").read_text()
            total += int(rollup.partition("\nPss:")[2].split()[0])
    return total / 1_024


class Watch:
    """The most that a process and all that it starts hold meanwhile, in MiB, looked at again and again: one that
    is killed in between takes with it what the system knew of it."""

    def __init__(self, pid: int) -> None:
        self.before = self.most = held(pid)
        self._pid = pid
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def growth(self) -> float:
        """How much more than before that is."""
        return self.most - self.before

    def _look(self) -> None:
        while not self._ended.wait(0.02):
            self.most = max(self.most, held(self._pid))


def cores() -> list[int]:
    """The cores that this process may use."""
    return sorted(os.sched_getaffinity(0))


@contextmanager
def apart(server: int) -> Iterator[None]:
    """Gives this process, and what it starts meanwhile, the first core, and the server the others: on one core they
    would take turns, and whether they share one would be chance."""
    everywhere = cores()
    if len(everywhere) > 1:
        _pin(os.getpid(), everywhere[:1])
        _pin(server, everywhere[1:])
    try:
        yield
    finally:
        _pin(os.getpid(), everywhere)
        _pin(server, everywhere)


def _pin(pid: int, wanted: list[int]) -> None:
    with suppress(FileNotFoundError):  # it has ended meanwhile, as a thread below may have
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(ProcessLookupError):
                os.sched_setaffinity(int(thread.name), wanted)
