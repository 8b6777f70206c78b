"""A program in a terminal of 80 columns, and the user in front of it."""

import os
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]
SECONDS = 30
"""How long a text may take to appear."""
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


class Terminal:
    """The output of a command, from its first character on."""

    def __init__(self, process: subprocess.Popen[bytes], fd: int) -> None:
        self.raw = ""
        self._process = process
        self._fd = fd

    @property
    def shown(self) -> str:
        """The output without colours and the redrawing of a progress bar."""
        return ESCAPES.sub("", self.raw).replace("\r\n", "\n")

    def wait_for(self, text: str) -> None:
        """Waits for the text. Raises AssertionError if it does not appear."""
        deadline = time.monotonic() + SECONDS
        while text not in self.shown:
            assert time.monotonic() < deadline, f"{text!r} is not in:\n{self.shown}"
            assert self._read(1), f"it ended without {text!r}:\n{self.shown}"

    def type(self, text: str) -> None:
        """Types the keys."""
        os.write(self._fd, text.encode())

    def interrupt(self) -> None:
        """Presses Ctrl+C."""
        self._process.send_signal(signal.SIGINT)

    def end(self) -> int:
        """Reads to the end; returns the exit code."""
        deadline = time.monotonic() + SECONDS
        while self._read(1):
            assert time.monotonic() < deadline, f"it does not end:\n{self.shown}"
        return self._process.wait(SECONDS)

    def _read(self, time_limit: float) -> bool:
        """Reads the available output; returns False at the end."""
        if not select.select([self._fd], [], [], time_limit)[0]:
            return self._process.poll() is None
        try:
            part = os.read(self._fd, 65_536)
        except OSError:  # the other side is closed
            return False
        self.raw += part.decode()
        return bool(part)


@contextmanager
def terminal(command: Sequence[str], cwd: Path = ROOT) -> Iterator[Terminal]:
    """Runs `python -m servers` with these arguments in a terminal until the end of the block."""
    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    env = {"PATH": os.environ["PATH"], "HOME": str(cwd), "TERM": "xterm", "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-m", "servers", *command],
        stdin=theirs, stdout=theirs, stderr=theirs, cwd=cwd, env=env, start_new_session=True,
    ) as process:  # fmt: skip
        os.close(theirs)
        try:
            yield Terminal(process, ours)
        finally:
            process.kill()
            os.close(ours)
