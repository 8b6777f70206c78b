"""A server on two pipes, and a client that is never what one waits for: it writes what was encoded before, reads in
large pieces and counts the ends of lines. What the answers say is looked at when the clock has stopped."""

import os
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Self

from tests.checks.benchmarks import messages
from tests.checks.benchmarks.messages import Ask
from tests.checks.benchmarks.peers import ROOT

PATIENCE = 60.0
"""Seconds that a run may take before the server is ended."""
CHUNK = 65_536
"""What a pipe holds."""
SECONDS = 0.5
"""How long a sample should take; how many requests that are differs by server and is found out."""


class Pipes:
    """One server process."""

    def __init__(self, command: list[str]) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed in __exit__
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, bufsize=0
        )
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        self._last_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._process.stdin.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._log.close()

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def greet(self) -> None:
        """Asks to initialize, and waits for the answer."""
        self.one_at_a_time(messages.INITIALIZE, 1)
        os.write(self._in, messages.INITIALIZED + b"\n")

    def one_at_a_time(self, ask: Ask, count: int) -> float:
        """Requests a second, each sent when the one before is answered."""
        lines, answers = self._lines(ask, count), []
        with self._bounded():
            began = time.perf_counter()
            for line in lines:
                os.write(self._in, line)
                answer = os.read(self._out, CHUNK)
                while not answer.endswith(b"\n"):
                    answer += self._more(answer)
                answers.append(answer)
            took = time.perf_counter() - began
        self._check(ask, answers, count)
        return count / took

    def ask(self, ask: Ask) -> bytes:
        """Asks once; the answer, which may be long. Notifications before it are passed over."""
        (line,) = self._lines(ask, 1)
        os.write(self._in, line)
        chunks = [b""]
        with self._bounded():
            while True:
                chunks.append(self._more(chunks[-1]))
                if chunks[-1].endswith(b"\n") and (answers := _answers(b"".join(chunks))):
                    break
        self._check(ask, answers, 1)
        return answers[0]

    def all_of(self, asks: Sequence[Ask]) -> list[bytes]:
        """Asks for different things, all at once; the answers, as they come. Notifications are passed over."""
        data, chunks, answers = b"".join(line for ask in asks for line in self._lines(ask, 1)), [b""], []
        with self._bounded():
            self._send(data)
            while len(answers) < len(asks):
                chunks.append(self._more(chunks[-1]))
                if chunks[-1].endswith(b"\n"):
                    answers += _answers(b"".join(chunks))
                    chunks = [b""]
        return answers

    def noticed(self) -> bytes:
        """The next notification."""
        with self._bounded():
            return self._more(b"")

    def pipelined(self, ask: Ask, count: int) -> float:
        """Requests a second, all sent at once."""
        answers, seconds = self._all_at_once(ask, count)
        self._check(ask, answers, count)
        return count / seconds

    def at_once(self, ask: Ask, at_once: int, count: int) -> float:
        """Requests a second, so many of which are under way at the same time."""
        lines, chunks = self._lines(ask, count), [b""]
        with self._bounded():
            began = time.perf_counter()
            self._send(b"".join(lines[:at_once]))
            seen, sent = 0, at_once
            while seen < count:
                chunks.append(self._more(chunks[-1]))
                ended = chunks[-1].count(b"\n")
                self._send(b"".join(lines[sent : sent + ended]))
                seen, sent = seen + ended, sent + ended
            took = time.perf_counter() - began
        self._check(ask, b"".join(chunks).splitlines(), count)
        return count / took

    def answers(self, ask: Ask, count: int) -> list[bytes]:
        """What is answered to requests that are all sent at once, good or not."""
        return self._all_at_once(ask, count)[0]

    def _all_at_once(self, ask: Ask, count: int) -> tuple[list[bytes], float]:
        data, chunks, seen = b"".join(self._lines(ask, count)), [b""], 0
        with self._bounded():
            sender = threading.Thread(target=self._send, args=(data,))
            began = time.perf_counter()
            sender.start()
            while seen < count:
                chunks.append(self._more(chunks[-1]))
                seen += chunks[-1].count(b"\n")
            took = time.perf_counter() - began
            sender.join()
        return b"".join(chunks).splitlines(), took

    def _lines(self, ask: Ask, count: int) -> list[bytes]:
        first = self._last_id + 1
        self._last_id += count
        return ask.lines(range(first, first + count))

    def _send(self, data: bytes) -> None:
        with suppress(BrokenPipeError):  # the server has ended, which the reader reports
            os.write(self._in, data)

    def _more(self, so_far: bytes) -> bytes:
        chunk = os.read(self._out, CHUNK)
        if not chunk:
            raise EOFError(f"no answer but {so_far!r:.500}; the server said {last_words(self._log)}")
        return chunk

    def _check(self, ask: Ask, answers: list[bytes], count: int) -> None:
        bad = next((answer for answer in answers if ask.expected not in answer), None)
        if bad is not None or len(answers) != count:
            what = f"{ask.method}: {len(answers)} answers to {count} requests, one of them {bad!r:.500}"
            raise ValueError(f"{what}; the server said {last_words(self._log)}")

    @contextmanager
    def _bounded(self) -> Iterator[None]:
        timer = threading.Timer(PATIENCE, self._process.kill)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


def _answers(lines: bytes) -> list[bytes]:
    """Those lines that are no notifications."""
    return [line for line in lines.splitlines() if b'"method"' not in line[:200]]


def last_words(log: IO[bytes]) -> str:
    """The end of what a server wrote for people."""
    size = log.seek(0, os.SEEK_END)
    return os.pread(log.fileno(), 2_000, max(0, size - 2_000)).decode("utf-8", "replace").strip() or "nothing"


def sample(run: Callable[[int], float]) -> float:
    """Requests a second. The shorter runs before warm the server up and tell how many requests are enough."""
    rate = run(20)
    for seconds in (SECONDS / 5, SECONDS):
        rate = run(max(20, round(rate * seconds)))
    return rate


def median_ms(run: Callable[[], object], times: int) -> float:
    """The median of the milliseconds that `run` takes."""
    took = []
    for _ in range(times):
        began = time.perf_counter()
        run()
        took.append(1_000 * (time.perf_counter() - began))
    return statistics.median(took)


def start_ms(command: list[str]) -> float:
    """Milliseconds from the start of a server to its answer to `initialize`."""
    began = time.perf_counter()
    with Pipes(command) as server:
        server.greet()
        return 1_000 * (time.perf_counter() - began)
