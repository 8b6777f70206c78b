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
    """What a command shows, from its first letter on."""

    def __init__(self, process: subprocess.Popen[bytes], fd: int) -> None:
        self.raw = ""
        self._process = process
        self._fd = fd

    @property
    def shown(self) -> str:
        """What was written, without colours and the movements of a bar."""
        return ESCAPES.sub("", self.raw).replace("\r\n", "\n")

    def wait_for(self, text: str) -> None:
        """Waits until the text is there. Raises AssertionError where it does not come."""
        deadline = time.monotonic() + SECONDS
        while text not in self.shown:
            assert time.monotonic() < deadline, f"{text!r} is not in:\n{self.shown}"
            assert self._read(1), f"it ended without {text!r}:\n{self.shown}"

    def type(self, text: str) -> None:
        """Presses the keys."""
        os.write(self._fd, text.encode())

    def interrupt(self) -> None:
        """Does what Ctrl+C does."""
        self._process.send_signal(signal.SIGINT)

    def end(self) -> int:
        """Reads to the end; the exit code."""
        deadline = time.monotonic() + SECONDS
        while self._read(1):
            assert time.monotonic() < deadline, f"it does not end:\n{self.shown}"
        return self._process.wait(SECONDS)

    def _read(self, seconds: float) -> bool:
        """Reads what there is; False at the end."""
        if not select.select([self._fd], [], [], seconds)[0]:
            return self._process.poll() is None
        try:
            part = os.read(self._fd, 65_536)
        except OSError:  # nobody has the other side any more
            return False
        self.raw += part.decode()
        return bool(part)


@contextmanager
def terminal(command: Sequence[str], cwd: Path = ROOT) -> Iterator[Terminal]:
    """`python -m servers` with these words, in a terminal, until the end of the block."""
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
