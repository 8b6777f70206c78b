"""One client at one server: what becomes of each row, and all of it as a table."""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.checks.interop.authorization.authority import SECRET, Authority
from tests.checks.interop.authorization.certificates import Certificates
from tests.checks.interop.authorization.peers import CLIENTS, SERVERS
from tests.checks.interop.servers.driving import serving
from tests.ports import free_port

ROWS = (
    "registers", "has a document", "is known", "is a program", "is bound", "steps up", "refreshes", "ended",
    "other audience", "too narrow", "denied",
)  # fmt: skip
"""Ways in first, and then whom a server does not let in."""
SECONDS = 120.0
READ = "filesystem:read"
ELSEWHERE = "http://127.0.0.1:1"

Found = Mapping[str, str]


@dataclass(frozen=True)
class Column:
    """A client and a server."""

    client: str
    server: str

    @property
    def lacks(self) -> Mapping[str, str]:
        """What either of them can't do, and why."""
        return {**SERVERS[self.server].lacks, **CLIENTS[self.client].lacks}

    @property
    def rows(self) -> list[str]:
        """What both can do."""
        return [row for row in ROWS if row not in self.lacks]


def drive(column: Column, authority: Authority, certificates: Certificates, folder: Path) -> Found:
    """What becomes of each row. Raises Unavailable."""
    served = folder / "served"
    served.mkdir()
    port = free_port()
    url, server = f"http://127.0.0.1:{port}/mcp", SERVERS[column.server]
    if server.introspects:
        authority.has_introspected(url)
    command = server.command(port, authority.issuer, served)
    client = CLIENTS[column.client].command()
    env = {name: value for name, value in os.environ.items() if not name.startswith("MCP_")} | certificates.trust
    with serving(command, port, env | {"MCP_AUTH_CLIENT_SECRET": SECRET}):
        task = _task(column, authority, url, served / "file.txt")
        done = subprocess.run(
            [*client, json.dumps(task)], env=env, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    if done.returncode:
        raise AssertionError(f"the client ended with {done.returncode}: {done.stderr[-4000:]}")
    found: dict[str, str] = json.loads(done.stdout)
    return found


def _task(column: Column, authority: Authority, url: str, file: Path) -> dict[str, object]:
    ended, elsewhere = authority.token(url, READ, client="expired-robot"), f"{ELSEWHERE}/{column.server}"
    if SERVERS[column.server].introspects:
        authority.revoke(ended, "expired-robot")
        authority.has_introspected(elsewhere)
    tokens = {
        "ended": ended,
        "other audience": authority.token(elsewhere, READ),
        "narrow": authority.token(url, READ),
    }
    return {
        "rows": column.rows,
        "url": url,
        "document": authority.document,
        "secret": SECRET,
        "file": str(file),
        "tokens": tokens,
    }


def table(found: Mapping[Column, Found]) -> Iterator[str]:
    """Its lines: "ok", "FAIL", or the letter of the reason why there is nothing to try."""
    reasons: dict[str, str] = {}
    yield " ".join([f"{'client':<11}{'server':<11}", *ROWS])
    for column, outcomes in found.items():
        for row in ROWS:
            if row in column.lacks:
                reasons.setdefault(column.lacks[row], "abcdefgh"[len(reasons)])
        marks = (_mark(column, row, outcomes, reasons).rjust(len(row)) for row in ROWS)
        yield " ".join([f"{column.client:<11}{column.server:<11}", *marks])
    yield from (f"{letter}: {reason}" for reason, letter in reasons.items())


def _mark(column: Column, row: str, outcomes: Found, reasons: Mapping[str, str]) -> str:
    if row in column.lacks:
        return reasons[column.lacks[row]]
    return "ok" if outcomes.get(row) == "ok" else "FAIL"
