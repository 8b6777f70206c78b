"""Load over HTTP, from wrk: one thread of it, so that it stays on the client's core, and a script of requests."""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
local heads, bodies, id = {{ {heads} }}, {{ {bodies} }}, {first}
request = function()
  id = id + 1
  local around = bodies[id % #bodies + 1]
  local body = around[1] .. id .. around[2]
  return heads[id % #heads + 1] .. #body .. "\\r\\n\\r\\n" .. body
end
done = function(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  local middle, late = latency:percentile(50), latency:percentile(99)
  local counts = {{summary.requests, summary.duration, summary.bytes, failed, middle, late}}
  io.write("\\nbench " .. table.concat(counts, " ") .. "\\n")
end
"""


@dataclass(frozen=True)
class Load:
    """Answers a second, and the milliseconds within which half of them and 99 of 100 came."""

    rate: float
    middle: float
    late: float


def load(web: Web, ask: Ask, headers: Sequence[Mapping[str, str]], connections: int) -> float:
    """Answers a second to `ask`, sent over so many connections at once with each of `headers` in turn.

    Raises Unavailable where there is no wrk, and ValueError where anything but good answers came.
    """
    return mixed_load(web, [ask], headers, connections).rate


def mixed_load(web: Web, asks: Sequence[Ask], headers: Sequence[Mapping[str, str]], connections: int) -> Load:
    """The load of `asks` in turn, with the one of `headers` in the same place or with each of them in turn.

    Raises Unavailable where there is no wrk, and ValueError where anything but good answers came.
    """
    program = find_wrk()
    first = next(_firsts)
    around = len(asks) if len(headers) == len(asks) else 1
    for number, ask in enumerate(asks):
        web.ask(ask, headers[number % around], first - number - 1)
    with tempfile.TemporaryDirectory() as folder, apart(web.pid):
        script = Path(folder) / "load.lua"
        script.write_text(_script(web, asks, headers, first))
        command = [program, "-t1", f"-c{connections}", f"-d{SECONDS}s", "--timeout", "20s", "-s", str(script)]
        said = subprocess.run(
            [*command, f"http://{HOST}:{web.port}"], capture_output=True, text=True, timeout=60, check=True
        ).stdout
    web.ask(asks[-1], headers[-1], first - len(asks) - 1)
    return _figures(said, sum(len(ask.expected) for ask in asks) / len(asks))


def find_wrk() -> str:
    """Where wrk is. Raises Unavailable."""
    program = shutil.which("wrk")
    if program is None:
        raise Unavailable("wrk is not installed (Debian and Ubuntu: apt install wrk)")
    return program


def _script(web: Web, asks: Sequence[Ask], headers: Sequence[Mapping[str, str]], first: int) -> str:
    bodies = [", ".join(map(json.dumps, ask.around_id())) for ask in asks]
    return _SCRIPT.format(
        heads=", ".join(json.dumps(_head(web, one)) for one in headers),
        bodies=", ".join(f"{{ {one} }}" for one in bodies),
        first=first,
    )


def _head(web: Web, headers: Mapping[str, str]) -> str:
    lines = [f"{name}: {value}" for name, value in {"Host": f"{HOST}:{web.port}", **ALWAYS, **headers}.items()]
    return "\r\n".join([f"POST {web.path} HTTP/1.1", *lines, "Content-Length: "])


def _figures(said: str, least_bytes: float) -> Load:
    figures = said.rpartition("\nbench ")[2].split()
    requests, microseconds, received, failed, middle, late = map(float, figures)
    # An error within an answer of status 200 is shorter than the file that was asked for.
    if failed or not requests or received / requests < least_bytes:
        raise ValueError(f"the load failed: {said}")
    return Load(requests * 1_000_000 / microseconds, middle / 1_000, late / 1_000)
