"""The rows of tasks: how fast calls become some, and what they take of memory while they wait for an answer."""

import sys
from collections.abc import Iterator
from pathlib import Path

from tests.checks.benchmarks import targets
from tests.checks.benchmarks.machine import apart, resident
from tests.checks.benchmarks.messages import Ask
from tests.checks.benchmarks.peers import Peer
from tests.checks.benchmarks.pipes import Pipes
from tests.checks.benchmarks.targets import Measure
from tests.wire import with_envelope

MANY = 1_000
BEFORE = 50
"""Tasks made before memory is looked at: the first one pays for what all of them share."""
COMMAND = [sys.executable, "-m", "servers.everything", "--max-client-tasks", str(BEFORE + MANY)]
CAPABILITIES = {"elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}}
CALL = {"name": "confirm_delete", "arguments": {"filename": "a"}}


def task_rows(peer: Peer, folder: Path) -> Iterator[tuple[Measure, float]]:
    """The figures of `peer`, whose tasks ask a question that nobody answers."""
    ask = Ask("tools/call", with_envelope(CALL, capabilities=CAPABILITIES), b'"taskId"')
    with Pipes(COMMAND) as server, apart(server.pid):
        server.one_at_a_time(ask, BEFORE)
        before = resident(server.pid)
        yield targets.TASK_RATE, server.one_at_a_time(ask, MANY)
        yield targets.WAITING_TASKS, resident(server.pid) - before
