"""A program with several worker processes on one port, for tests."""

import os
import re
import secrets
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import httpx
from prometheus_client.parser import text_string_to_metric_families

from tests.processes import is_alive
from tests.raw import NO_TLS, ROOT, SLOW, Json, call, post, stateless
from tests.redis_server import RedisServer
from tests.wire import PATIENCE

SLOW_OVER_HTTP = [*SLOW, "--transport", "http"]
FREELY = ["--max-rate", "1e9", "--max-burst", "1e9"]


def wait_for(condition: Callable[[], Any], what: str) -> Any:
    """Polls a condition; returns its first true value."""
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < deadline, f"it took too long until {what}"
        threading.Event().wait(0.01)
    return found


class Several:
    """The running program. `url` is that of the listener, without a path."""

    def __init__(
        self,
        store: RedisServer,
        *words: str,
        command: list[str] = SLOW_OVER_HTTP,
        env: Mapping[str, str] | None = None,
    ) -> None:
        shared = ["--store", store.url, "--store-prefix", f"{secrets.token_hex(8)}:"]
        self.words = [*command, "--port", "0", "--workers", "2", *shared, *words]
        self.env = {**os.environ, "MCP_STATE_KEY": "of-all-replicas" * 3, **(env or {})}
        self.lines: list[str] = []

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(self.words, cwd=ROOT, env=self.env, stderr=subprocess.PIPE, text=True)
        self._reading = threading.Thread(target=self._read)
        self._reading.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        pids = self.pids() if self.process.poll() is None else []
        for pid in (self.process.pid, *pids):
            self.kill(pid)
        self.process.wait(PATIENCE)
        # The thread ends with the last process that has the pipe open.
        self._reading.join(PATIENCE)
        assert self.process.stderr is not None
        self.process.stderr.close()

    def _read(self) -> None:
        assert self.process.stderr is not None
        self.lines.extend(iter(self.process.stderr.readline, ""))

    def served(self) -> Self:
        """Waits until it serves."""
        line: str = wait_for(lambda: next((one for one in self.lines if "listening on" in one), None), "it serves")
        self.url = re.findall(r"http://[^/]+", line)[0]
        return self

    def wait_for_line(self, *parts: str) -> None:
        """Waits for a line with all of these parts."""
        wait_for(lambda: any(all(part in line for part in parts) for line in self.lines), f"it says {parts}")

    def send(self, number: signal.Signals) -> None:
        """Sends a signal to the parent."""
        self.process.send_signal(number)

    def kill(self, pid: int) -> None:
        """Ends a process at once."""
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            assert pid != self.process.pid or self.process.poll() is not None

    def ended(self) -> int:
        """Waits for the end of the parent; returns its exit code."""
        code = self.process.wait(PATIENCE)
        self._reading.join(PATIENCE)
        return code

    def pids(self) -> list[int]:
        """Returns the process ids of the live workers."""
        parent = self.process.pid
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        return [pid for pid in map(int, children) if is_alive(pid)]

    def pid(self, number: int) -> int:
        """Returns the process id of the worker of that number."""
        return next(pid for pid in self.pids() if variable(pid, "MCP_WORKER").startswith(f"{number}:"))

    def health(self) -> Json:
        """Returns the JSON of /healthz on a new connection, from any worker."""
        body: Json = httpx.get(f"{self.url}/healthz", timeout=PATIENCE, verify=NO_TLS).json()
        return body

    def metrics(self) -> dict[str, float]:
        """Returns the metrics, summed over their labels."""
        answer = httpx.get(f"{self.url}/metrics", timeout=PATIENCE, verify=NO_TLS)
        assert answer.status_code == 200, answer.text
        sums: dict[str, float] = {}
        for family in text_string_to_metric_families(answer.text):
            for sample in family.samples:
                sums[sample.name] = sums.get(sample.name, 0.0) + sample.value
        return sums

    def call(self, tool: str, **arguments: Any) -> httpx.Response:
        """Calls a tool on a new connection."""
        message = stateless(call(1, tool, **arguments))
        # Without log messages, the answer is no stream: its headers are sent with its end.
        del message["params"]["_meta"]["io.modelcontextprotocol/logLevel"]
        return post(f"{self.url}/mcp", message)


def variable(pid: int, name: str) -> str:
    """Returns an environment variable of a process at its start; empty if unset."""
    variables = Path(f"/proc/{pid}/environ").read_text().split("\0")
    return next((one.partition("=")[2] for one in variables if one.startswith(f"{name}=")), "")
