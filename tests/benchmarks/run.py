"""`make bench`: our filesystem server beside the official SDK's, on stdio, in one run.

A raw client without an SDK drives both, in turn, so that a machine that slows down slows both. What counts are the
ratios; the figures themselves are this machine's. No test asserts them.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 5
SINGLE, PIPELINED = 300, 2_000
COMMANDS = {
    "ours": [sys.executable, "-m", "servers.filesystem"],
    "SDK": [sys.executable, "-m", "tests.benchmarks.sdk_server"],
}
READ = {"name": "read_text_file", "arguments": {"path": "file.txt"}}
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


class Peer:
    """One server process on two pipes."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self.process = subprocess.Popen(
            [*command, str(folder)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._last_id = 0

    def line(self, method: str, params: dict[str, Any] | None) -> bytes:
        self._last_id += 1
        message = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params or {}}
        return json.dumps(message).encode() + b"\n"

    def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        self.process.stdin.write(self.line(method, params))
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        assert "result" in answer, answer
        return answer

    def one_at_a_time(self, method: str, params: dict[str, Any] | None) -> float:
        """Requests a second, each sent when the one before is answered."""
        began = time.perf_counter()
        for _ in range(SINGLE):
            self.ask(method, params)
        return SINGLE / (time.perf_counter() - began)

    def pipelined(self, method: str, params: dict[str, Any] | None) -> float:
        """Requests a second, all sent at once."""
        lines = b"".join(self.line(method, params) for _ in range(PIPELINED))

        def send() -> None:
            self.process.stdin.write(lines)
            self.process.stdin.flush()

        began = time.perf_counter()
        sender = threading.Thread(target=send)
        sender.start()
        for _ in range(PIPELINED):
            self.process.stdout.readline()
        sender.join()
        return PIPELINED / (time.perf_counter() - began)

    def resident(self) -> float:
        """MiB of memory."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * 4_096 / 1_048_576

    def end(self) -> None:
        self.process.stdin.close()
        self.process.wait(timeout=10)


def measure(command: list[str], folder: Path) -> dict[str, float]:
    """The figures of one server started afresh."""
    began = time.perf_counter()
    peer = Peer(command, folder)
    peer.ask("initialize", HELLO)
    figures = {"start to initialize, ms": 1_000 * (time.perf_counter() - began)}
    peer.process.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    peer.ask("tools/list")
    figures["resident memory, MiB"] = peer.resident()
    kinds: list[tuple[str, Callable[[str, Any], float]]] = [
        ("one at a time", peer.one_at_a_time),
        ("pipelined", peer.pipelined),
    ]
    for name, method, params in (("ping", "ping", None), ("read 1 KiB", "tools/call", READ)):
        for kind, run in kinds:
            figures[f"{name}, {kind}, a second"] = run(method, params)
    peer.end()
    return figures


def main() -> None:
    """Measures both in turn, and prints medians, spread and ratios."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "file.txt").write_text("x" * 1_024)
        for _ in range(ROUNDS):
            for name, command in COMMANDS.items():
                found[name].append(measure(command, Path(folder)))
    print(f"{'measure':32}{'ours':>10}{'min':>10}{'max':>10}{'SDK':>10}{'ours/SDK':>10}")
    for row in found["ours"][0]:
        ours, peer = ([figures[row] for figures in found[name]] for name in ("ours", "SDK"))
        middle, other = statistics.median(ours), statistics.median(peer)
        print(f"{row:32}{middle:10,.0f}{min(ours):10,.0f}{max(ours):10,.0f}{other:10,.0f}{middle / other:10.2f}")


if __name__ == "__main__":
    main()
