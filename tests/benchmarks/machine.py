"""The machine: its size, what is installed on it, what a process holds in memory, and who gets which core."""

import os
import platform
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from tests.benchmarks import peers, sqlite_peers
from tests.npm import Unavailable

MIB = 1_048_576
PACKAGES = ("anyio", "httptools", "mcp", "pydantic", "pydantic_core", "starlette", "uvicorn", "uvloop")


def describe() -> dict[str, Any]:
    """The size of the machine and the versions of what takes part."""
    return {
        "cores": len(cores()),
        "memory, GiB": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1_024 / MIB, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "versions": {"Python": platform.python_version(), **_packages(), **_programs(), **_sqlite()},
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


def _sqlite() -> dict[str, str]:
    return {"SQLite": sqlite3.sqlite_version, **sqlite_peers.versions()}


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
