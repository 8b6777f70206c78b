"""What is run of the official suite, and what came of it.

The numbers of scenarios are those of the pinned suite: a leg that runs fewer has not been tested, whatever it says.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from tests.checks.conformance.client import DONE

Side = Literal["server", "client"]
Way = Literal["direct", "joined", "chained", "replicated"]
"""To the server: nothing in between, the joined endpoint, `expose` and behind it `connect`, or nginx before three
replicas, of which each has every third request."""


@dataclass(frozen=True)
class Leg:
    """One run of the suite: its arguments, and how many scenarios it must run."""

    name: str
    arguments: tuple[str, ...]
    scenarios: int
    side: Side = "server"
    """What is tested."""
    skipped: int | None = None
    """How many checks can't be made; None where that does not matter."""
    scored: int | None = None
    """How many of them count for a tier, where the suite tells."""
    way: Way = "direct"
    excluded: Mapping[str, str] = field(default_factory=dict)
    """The scenarios in which a check fails, or nothing can be checked, because of the way, and why."""


def _version(date: str, scenarios: int) -> Leg:
    return Leg(date, ("--suite", "all", "--spec-version", date), scenarios)


def _through(way: Way, what: str, scenarios: int) -> Leg:
    """The same through the gateway, in one version or in `all`, which has the tasks."""
    excluded = {name: why for (through, version, name), why in EXCLUDED.items() if (through, version) == (way, what)}
    version = () if what == "all" else ("--spec-version", what)
    return Leg(f"{way} {what}", ("--suite", "all", *version), scenarios, way=way, excluded=excluded)


def _requirements(date: str, scenarios: int, scored: int) -> Leg:
    return Leg(f"requirements {date}", ("--requirements", date), scenarios, scored=scored)


def _client(what: str, *arguments: str, scenarios: int, skipped: int = 0) -> Leg:
    """Scenarios of the client, all at once."""
    patient = (*arguments, "--timeout", "120000")
    return Leg(f"client {what}", patient, scenarios, "client", skipped)


def _client_requirements(date: str, scenarios: int, scored: int, *, skipped: int = 0) -> Leg:
    leg = _client(f"requirements {date}", "--requirements", date, scenarios=scenarios, skipped=skipped)
    return replace(leg, scored=scored)


HANDSHAKE_HEADERS = 2
"""Checks of `http-standard-headers` about `initialize` and the notification after it, which the only version that has
such headers does not know."""

EXCLUDED: dict[tuple[Way, str, str], str] = {
    ("chained", "2025-11-25", "server-sse-polling"): "closing a stream is no message that could be passed on",
    ("chained", "all", "server-sse-polling"): "closing a stream is no message that could be passed on",
    ("chained", "all", "tasks-required-task-error"): "a bridge waits for the result for clients without tasks",
    ("chained", "all", "tasks-status-notifications"): "the suite skips its only check, over any way",
    ("joined", "all", "tasks-status-notifications"): "the suite skips its only check, over any way",
    ("replicated", "all", "tasks-status-notifications"): "the suite skips its only check, over any way",
}
"""Ways, versions and scenarios: what can't pass, and why."""

THROUGH: tuple[Way, ...] = ("joined", "chained")
SERVED = {"2025-03-26": 1, "2025-06-18": 27, "2025-11-25": 33, "2026-07-28": 40}
"""The scenarios of each version of a server."""
REQUIRED = ("2025-11-25", "2026-07-28")
"""The versions of which the suite has the requirements: these are all scenarios of the version, and more."""
REPLICATED = {"2025-11-25": 33, "all": 65}

SKILLS = ("no-prefetch", "verify-digest", "verify-size", "verify-frontmatter")
"""The scenarios of the client that only the suite `all` has: its 44 others are, in the same versions, those of the
requirements and of `backcompat`."""

LEGS = (
    *(_version(date, scenarios) for date, scenarios in SERVED.items() if date not in REQUIRED),
    *(_through(way, date, scenarios) for way in THROUGH for date, scenarios in SERVED.items()),
    _requirements("2025-11-25", 33, 30),
    _requirements("2026-07-28", 50, 37),
    Leg("all", ("--suite", "all"), 65),
    *(_through(way, "all", 65) for way in THROUGH),
    *(_through("replicated", what, scenarios) for what, scenarios in REPLICATED.items()),
    _client("2025-06-18", "--suite", "all", "--spec-version", "2025-06-18", scenarios=5),
    _client_requirements("2025-11-25", 25, 18),
    _client_requirements("2026-07-28", 39, 32, skipped=HANDSHAKE_HEADERS),
    _client("backcompat", "--suite", "backcompat", scenarios=2),
    *(_client(f"skills {name}", "--scenario", f"sep-2640-client-{name}", scenarios=1) for name in SKILLS),
)


@dataclass
class Outcome:
    """What one leg came to. `checks` counts the checks by their status."""

    leg: Leg
    exit_code: int
    output: str
    seconds: float
    scenarios: dict[str, Counter[str]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    """Each check that failed or warned and is not expected to: its scenario, id, and what the suite says of it."""
    unfinished: list[str] = field(default_factory=list)
    """The scenarios in which the client failed, although no check did: the suite says nothing of these."""

    @property
    def checks(self) -> Counter[str]:
        """The checks of all scenarios by status."""
        return sum(self.scenarios.values(), Counter())

    @property
    def failing(self) -> list[str]:
        """The scenarios with a failed check."""
        return [name for name, checks in self.scenarios.items() if checks["FAILURE"]]

    @property
    def untested(self) -> list[str]:
        """The scenarios in which nothing failed, because nothing was checked."""
        return [name for name, checks in self.scenarios.items() if not checks["SUCCESS"] + checks["FAILURE"]]

    @property
    def stopped(self) -> list[str]:
        """The scenarios that failed, or found nothing to check."""
        return sorted({*self.failing, *self.untested})

    @property
    def scored(self) -> tuple[int, int] | None:
        """How many scored scenarios are fine, and how many there are; None where the suite does not score."""
        told = re.search(r"Not scored for \S+: (\d+) scenario\(s\) run, (\d+) failing", self.output)
        if told is None:
            return None
        unscored, failing = int(told[1]), int(told[2])
        scored = len(self.scenarios) - unscored
        return scored - (len(self.failing) - failing), scored

    @property
    def complaints(self) -> list[str]:
        """Why the leg has not passed; nothing where it has."""
        found = []
        if self.exit_code and not self.leg.excluded.keys() & self.failing:
            found.append(f"the suite ended with {self.exit_code}")
        if self.leg.way == "direct" and self.failing:
            found.append(f"{self.failing} did not pass")
        elif self.leg.way != "direct" and set(self.stopped) != self.leg.excluded.keys():
            found.append(f"{self.stopped} did not pass, where {sorted(self.leg.excluded)} can't")
        if len(self.scenarios) != self.leg.scenarios:
            found.append(f"{len(self.scenarios)} scenarios were run, not {self.leg.scenarios}")
        if self.leg.scored is not None and self.scored != (self.leg.scored, self.leg.scored):
            found.append(f"{self.scored} of {self.leg.scored} scored scenarios are fine")
        if self.checks["WARNING"]:
            found.append(f"{self.checks['WARNING']} warnings")
        if self.leg.skipped is not None and self.checks["SKIPPED"] != self.leg.skipped:
            found.append(f"{self.checks['SKIPPED']} checks were skipped, not {self.leg.skipped}")
        if self.unfinished:
            found.append(f"the client did not come to its end in {', '.join(self.unfinished)}")
        return found


def read_outcome(leg: Leg, folder: Path, *, exit_code: int, output: str, seconds: float) -> Outcome:
    """The outcome of `leg`, whose results the suite has written into `folder`."""
    outcome = Outcome(leg, exit_code, output, seconds)
    for path in sorted(folder.rglob("checks.json")):
        name = re.sub(r"^server-|-\d{4}-\d\d-\d\dT[\d-]+Z$", "", path.parent.relative_to(folder).as_posix())
        checks = json.loads(path.read_text())
        statuses = outcome.scenarios[name] = Counter(check["status"] for check in checks)
        outcome.faults += [
            f"{check['status']} {name}:{check['id']}: {check.get('errorMessage', '')}"
            for check in checks
            if check["status"] in ("FAILURE", "WARNING") and name not in leg.excluded
        ]
        if leg.side == "client" and not statuses["FAILURE"] and DONE not in (path.parent / "stdout.txt").read_text():
            outcome.unfinished.append(name)
            outcome.faults.append(f"{name}: {(path.parent / 'stderr.txt').read_text()[-1000:]}")
    return outcome


HEADINGS = ("leg", "scenarios", "scored", "passed", "failed", "warnings", "skipped", "seconds", "")


def table(rows: Iterable[tuple[str, ...]]) -> str:
    """The rows of outcomes, one line each."""
    rows = [HEADINGS, *rows]
    widths = [max(len(cells[column]) for cells in rows) for column in range(len(HEADINGS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip() for cells in rows
    )


def row(outcome: Outcome) -> tuple[str, ...]:
    """What the table tells of it: scenarios that are fine of those that were run, then checks."""
    run, checks = len(outcome.scenarios), outcome.checks
    scored = "" if outcome.scored is None else "{}/{}".format(*outcome.scored)
    counts = (str(checks[status]) for status in ("SUCCESS", "FAILURE", "WARNING", "SKIPPED"))
    verdict = "; ".join(outcome.complaints) or "ok"
    return (
        outcome.leg.name,
        f"{run - len(outcome.failing)}/{run}",
        scored,
        *counts,
        f"{outcome.seconds:.1f}",
        verdict,
    )
