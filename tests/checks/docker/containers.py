"""What holds in each container, and what it costs."""

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.checks.docker.images import Image, cells
from tests.raw import INITIALIZE, Raw

Measured = Callable[[str, float, float, float], None]
"""Of each image: MiB over its base, MiB of memory when it has answered, milliseconds from its start to an answer."""

MOST_MIB = 150
"""Over the base image: the bundle, with the client libraries of PostgreSQL and Redis."""
DRAIN_SECONDS = 10
"""In which a server has ended, whatever keeps it."""
CLEAN_UP_SECONDS = 10
WITHIN = """
import importlib.util, pathlib, shutil, sys
assert not [name for name in ("cc", "gcc") if shutil.which(name)]
assert not [name for name in ("pip", "ensurepip", "setuptools") if importlib.util.find_spec(name)]
import mcp_server_bundle.program.run
for module in list(sys.modules.values()):
    if "site-packages" in str(getattr(module, "__cached__", "")):
        said = int.from_bytes(pathlib.Path(module.__cached__).read_bytes()[8:12], "little")
        assert said == int(pathlib.Path(module.__file__).stat().st_mtime), module
"""
"""What holds in an image: nothing in it installs or builds anything, and all modules are compiled."""


class Container(NamedTuple):
    """A server that runs in its image."""

    image: Image
    pid: int

    @property
    def root(self) -> Path:
        """Its root, seen from here."""
        return Path(f"/proc/{self.pid}/root")

    def within(self, *words: str, first: bool = False, **environment: str) -> list[str]:
        """What runs a command beside the server, with its user, its root and the image's environment; `first` as
        process 1 among processes of its own."""
        user = self.image.config["User"]
        given = [f"{name}={value}" for name, value in environment.items()]
        given += ["unshare", "--pid", "--fork"] if first else []
        return [
            "env",
            "-i",
            *self.image.config["Env"],
            *given,
            "chroot",
            f"--userspec={user}",
            str(self.root),
            *words,
        ]


@contextmanager
def started_in(image: Image, arguments: list[str], environment: Mapping[str, str]) -> Iterator[Raw]:
    """The server of an image. If it has not ended by the end of the block, it is killed, and not the tool, which has
    to clean up after it."""
    with Raw(image.command(arguments, environment)) as server:
        try:
            yield server
        finally:
            while server.process.poll() is None:
                for pid in children(server):
                    os.kill(pid, signal.SIGKILL)
                with suppress(subprocess.TimeoutExpired):
                    server.process.wait(CLEAN_UP_SECONDS)


def container_of(image: Image, server: Raw) -> Container:
    """The container of `server`, which has said something, so that nothing of the tool stands before it any more."""
    (pid,) = children(server)
    return Container(image, pid)


def children(server: Raw) -> list[int]:
    """The processes below what was started."""
    return [int(pid) for pid in Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()]


def check_confined(container: Container) -> None:
    """It has no rights, can write nowhere but in /tmp, and is made up of what serves and nothing else."""
    status = status_of(container)
    assert container.image.user >= 10_000
    assert set(status["Uid"].split()) == set(status["Gid"].split()) == {str(container.image.user)}
    assert int(status["CapEff"], 16) == 0
    assert os.statvfs(container.root).f_flag & os.ST_RDONLY
    subprocess.run(container.within("python", "-c", WITHIN), check=True, timeout=60)


def status_of(container: Container) -> dict[str, str]:
    """What the kernel says of the server."""
    lines = Path(f"/proc/{container.pid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines)


def check_size(target: str, size: float) -> None:
    """The size is within bounds, and about what README.md says."""
    assert size <= MOST_MIB
    assert {row[0]: float(row[1]) for row in cells("Images")}[target] == pytest.approx(size, rel=0.1)


def memory(container: Container) -> float:
    """MiB that the server holds."""
    return int(status_of(container)["VmRSS"].split()[0]) / 1024


def healthy(container: Container, **environment: str) -> bool:
    """What the health check of the image says."""
    test = container.image.config["Healthcheck"]["Test"]
    assert test[0] == "CMD"
    done = subprocess.run(container.within(*test[1:], **environment), capture_output=True, timeout=60, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode == 0


def added(container: Container) -> float:
    """MiB that the image has over its base, which has nothing in /opt."""
    files = [path.lstat() for path in (container.root / "opt").rglob("*") if not path.is_dir()]
    return sum(file.st_size for file in files) / 2**20


def started(container: Container, arguments: list[str]) -> float:
    """Milliseconds from the start of the server to its first answer: the quickest of five."""
    words = container.within(*container.image.entrypoint, *arguments)
    measured = []
    for _ in range(5):
        begun = time.perf_counter()
        with Raw(words) as server:
            server.send(INITIALIZE)
            server.answer("init")
            measured.append(time.perf_counter() - begun)
            server.close_stdin()
            assert server.wait() == 0
    return min(measured) * 1_000


def stop(pid: int) -> None:
    """Sends SIGTERM to a server, as engines do, and waits for its end."""
    server = os.pidfd_open(pid)
    try:
        signal.pidfd_send_signal(server, signal.SIGTERM)
        assert select.select([server], [], [], DRAIN_SECONDS)[0], "it does not end"
    finally:
        os.close(server)
