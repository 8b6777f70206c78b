"""What the documents tell a newcomer to do, done: in order, in a fresh checkout, by a user who has nothing yet.

A block of `sh` holds commands. One of `console` holds commands behind `$`, and what each of them prints; a line of
`...` stands for any. In the prose, what stands in backticks and begins with `.venv/bin/` is a command as well. A
block of another language whose first line is a comment with a path, such as `# ~/dice.py`, is the file that is meant.

Every command begins in the checkout; what one of them sets in its shell is gone with it.
"""

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from threading import Timer
from typing import Any, NamedTuple

import httpx

from tests.raw import INITIALIZE
from tests.records import recorded

SECONDS = 300
"""Until a command is given up; the longest ones install what they need."""
HOME = "/home/me"
"""How the READMEs call the home of their reader, who has the checkout in it."""
CHECKOUT = "mcp-server-bundle"
TOOK = "README"
"""The user property with an item of `Newcomer.took`."""

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$|`(\.venv/bin/[^`\n]+)`", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# (~/[\w.-]+)(?::.*)?\n")
SERVER = re.compile(r"(^|[/ ])mcp-bundle-\w+\b(?! (lint|test|render|export)\b)|^\S*python \S+\.py")
LISTENING = re.compile(r"(?:listening on|the workbench is at) (http://[^\s;]+)")


class Step(NamedTuple):
    """Something to do: a command, or a file to write where `path` is given."""

    page: str
    line: int
    text: str
    shown: str | None = None
    """What the command prints, as the README has it."""
    path: str | None = None

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.text}"


def steps_of(page: Path, name: str) -> Iterator[Step]:
    """What `page` says is to be done, in its order."""
    source = page.read_text()
    for block in BLOCK.finditer(source):
        language, text, inline = block.groups()
        line = source.count("\n", 0, block.start()) + 1
        if inline is not None:
            yield Step(name, line, inline)
        elif language == "sh":
            yield from (Step(name, line, command) for command in _commands(text))
        elif language == "console":
            yield from (Step(name, line, command, shown) for command, shown in _sessions(text))
        elif (file := FILE.match(text)) is not None:
            yield Step(name, line, text, path=file[1])


def _commands(text: str) -> Iterator[str]:
    joined = text.replace("\\\n", "")
    return (line for line in joined.splitlines() if line and not line.startswith("#"))


def _sessions(text: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown


class Newcomer:
    """A user with a fresh home, in which the checkout stands, and the variables that are given."""

    def __init__(self, home: Path, environment: Mapping[str, str]) -> None:
        self.home = home
        self.checkout = home / CHECKOUT
        # Any free port, so that no other server is in the way; and output in its order, as in a terminal.
        self.took: list[tuple[float, str]] = []
        """Seconds, of each command."""
        self.environment = {**environment, "HOME": str(home), "MCP_PORT": "0", "PYTHONUNBUFFERED": "1"}

    def follow(self, steps: Sequence[Step]) -> None:
        """Does what they say. Raises AssertionError for the first that does not do what the README says."""
        for step in steps:
            if step.path is not None:
                (self.home / step.path.removeprefix("~/")).write_text(step.text)
                continue
            began = time.monotonic()
            code, said = self.run(step.text)
            self.took.append((time.monotonic() - began, str(step)))
            assert code == 0, f"{step}\nended with {code}:\n{said}"
            if SERVER.search(step.text):
                assert LISTENING.search(said) or '"serverInfo"' in said, f"{step}\nis no server:\n{said}"
            if step.shown is not None:
                assert agree(step.shown, self.as_shown(said)), f"{step}\nprints:\n{self.as_shown(said)}"

    def run(self, command: str) -> tuple[int, str]:
        """The exit code of a command and all that it wrote. A server on stdio is asked once and then left; one on
        HTTP is asked for its health, and stopped."""
        with subprocess.Popen(
            ["bash", "-c", command], cwd=self.checkout, env=self.environment, start_new_session=True, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        ) as process:  # fmt: skip
            late = Timer(SECONDS, os.killpg, (process.pid, signal.SIGKILL))
            late.start()
            try:
                said = "".join(self._heard(process))
            finally:
                late.cancel()
        return process.returncode, said

    def _heard(self, process: subprocess.Popen[str]) -> Iterator[str]:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(INITIALIZE) + "\n")
            process.stdin.close()
        except BrokenPipeError:  # it wants nothing, and has ended
            pass
        for line in process.stdout:
            yield line
            if listening := LISTENING.match(line):
                healthy(listening[1])
                os.killpg(process.pid, signal.SIGTERM)

    def as_shown(self, said: str) -> str:
        """What was written, as on the machine that the READMEs show."""
        return re.sub(r"(?<=127\.0\.0\.1:)\d+", "8000", said.replace(str(self.home), HOME))


def healthy(url: str) -> None:
    """Asks the server at `url` whether it is. Raises AssertionError."""
    port = httpx.URL(url).port
    answer = httpx.get(f"http://127.0.0.1:{port}/healthz", trust_env=False, timeout=30)
    assert answer.status_code == httpx.codes.OK, answer.text


def agree(shown: str, said: str) -> bool:
    """Whether `said` is what is shown."""
    pattern = "".join(r"(?:.*\n)*?" if line.strip() == "..." else re.escape(line) for line in shown.splitlines(True))
    return re.fullmatch(pattern, said) is not None


def print_tables(terminalreporter: Any) -> None:
    """Prints which commands took more than a second."""
    terminalreporter.section("commands of the READMEs, in seconds")
    for seconds, command in recorded(terminalreporter, TOOK):
        if seconds > 1:
            terminalreporter.write_line(f"{seconds:5.1f}  {command[:110]}")
