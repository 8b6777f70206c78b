"""A real Redis for tests on a separate socket: started, stopped and killed like any other process."""

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

__all__ = ["RedisServer", "require_redis"]

PATIENCE = 20.0


def require_redis() -> str:
    """Returns the program; without it, skips the test, and fails under CI=true."""
    found = shutil.which("redis-server")
    if found is None:
        reason = "redis-server is not installed (Debian: apt install redis-server)"
        pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
    return found


class RedisServer:
    """One server. It listens on a UNIX socket in its folder, and with `port` also on loopback."""

    def __init__(self, folder: Path, *options: str, port: int = 0) -> None:
        self.folder = folder
        self.port = port
        self.options = options
        self.socket = folder / "redis.sock"
        self.url = f"unix://{self.socket}" if not port else f"redis://127.0.0.1:{port}/0"
        self._process: subprocess.Popen[bytes] | None = None
        self.used = 0
        """How many have asked for a prefix of their own."""

    def send(self, signal_: signal.Signals) -> None:
        """Sends a signal to the server."""
        assert self._process is not None
        self._process.send_signal(signal_)

    def start(self) -> None:
        """Starts the server, and waits until it accepts connections."""
        words = [
            require_redis(),
            "--port",
            str(self.port),
            "--unixsocket",
            str(self.socket),
            "--dir",
            str(self.folder),
        ]
        words += ["--save", "", "--logfile", str(self.folder / "redis.log"), "--daemonize", "no", *self.options]
        self._process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        ends = time.monotonic() + PATIENCE
        while not self._answers():
            assert self._process.poll() is None, (self.folder / "redis.log").read_text()
            assert time.monotonic() < ends, "redis-server did not start"
            time.sleep(0.01)

    @property
    def is_running(self) -> bool:
        """Returns whether its process runs."""
        return self._process is not None

    def stop(self, *, kill: bool = False) -> None:
        """Shuts the server down in order, or kills it with -9."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
            self._process.wait(PATIENCE)
            self._process = None

    def used_bytes(self) -> int:
        """Returns its memory in bytes."""
        with socket.socket(socket.AF_UNIX) as link:
            link.connect(str(self.socket))
            link.sendall(b"INFO memory\r\n")
            return int(link.recv(65_536).partition(b"used_memory:")[2].split()[0])

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as link:
            try:
                link.connect(str(self.socket))
                link.sendall(b"PING\r\n")
                return link.recv(100).startswith((b"+PONG", b"-NOAUTH"))
            except OSError:
                return False
