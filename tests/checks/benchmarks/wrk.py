"""Load over HTTP, from wrk: one thread of it, so that it stays on the client's core, and a script of requests."""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path

from tests.checks.benchmarks.machine import apart
from tests.checks.benchmarks.messages import Ask
from tests.checks.benchmarks.web import ALWAYS, HOST, Web
from tests.npm import Unavailable

SECONDS = 2
IDS = 10_000_000
"""Ids that a run has for itself: what it leaves behind unanswered must not meet the ids of the next one."""
_firsts = count(IDS, IDS)

# `heads` has one entry for each session; they take turns. wrk asks for a request without naming the connection that
# it is for, so a session stays with one connection only on average. All text is encoded as JSON, which Lua can read.
_SCRIPT = """
local heads, before, after, id = {{ {heads} }}, {before}, {after}, {first}
request = function()
  id = id + 1
  local body = before .. id .. after
  return heads[id % #heads + 1] .. #body .. "\\r\\n\\r\\n" .. body
end
done = function(summary)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format("\\nbench %d %d %d %d\\n", summary.requests, summary.duration, summary.bytes, failed))
end
"""


def load(web: Web, ask: Ask, headers: Sequence[Mapping[str, str]], connections: int) -> float:
    """Answers a second to `ask`, sent over so many connections at once with each of `headers` in turn.

    Raises Unavailable where there is no wrk, and ValueError where anything but good answers came.
    """
    program = find_wrk()
    first = next(_firsts)
    web.ask(ask, headers[0], first - 1)
    with tempfile.TemporaryDirectory() as folder, apart(web.pid):
        script = Path(folder) / "load.lua"
        script.write_text(_script(web, ask, headers, first))
        command = [program, "-t1", f"-c{connections}", f"-d{SECONDS}s", "-s", str(script)]
        said = subprocess.run(
            [*command, f"http://{HOST}:{web.port}"], capture_output=True, text=True, timeout=60, check=True
        ).stdout
    web.ask(ask, headers[-1], first - 2)
    return _rate(said, len(ask.expected))


def find_wrk() -> str:
    """Where wrk is. Raises Unavailable."""
    program = shutil.which("wrk")
    if program is None:
        raise Unavailable("wrk is not installed (Debian and Ubuntu: apt install wrk)")
    return program


def _script(web: Web, ask: Ask, headers: Sequence[Mapping[str, str]], first: int) -> str:
    before, after = ask.around_id()
    return _SCRIPT.format(
        heads=", ".join(json.dumps(_head(web, one)) for one in headers),
        before=json.dumps(before),
        after=json.dumps(after),
        first=first,
    )


def _head(web: Web, headers: Mapping[str, str]) -> str:
    lines = [f"{name}: {value}" for name, value in {"Host": f"{HOST}:{web.port}", **ALWAYS, **headers}.items()]
    return "\r\n".join([f"POST {web.path} HTTP/1.1", *lines, "Content-Length: "])


def _rate(said: str, least_bytes: int) -> float:
    figures = said.rpartition("\nbench ")[2].split()
    requests, microseconds, received, failed = map(int, figures)
    # An error within an answer of status 200 is shorter than the file that was asked for.
    if failed or not requests or received / requests < least_bytes:
        raise ValueError(f"the load failed: {said}")
    return requests * 1_000_000 / microseconds
