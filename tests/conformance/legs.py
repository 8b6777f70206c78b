"""What is run of the official suite, and what came of it.

The numbers of scenarios are those of the pinned suite: a leg that runs fewer has not been tested, whatever it says.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

BASELINE = Path(__file__).resolve().parent / "expected-failures.yaml"


@dataclass(frozen=True)
class Leg:
    """One run of the suite: its arguments, and how many scenarios it must run."""

    name: str
    arguments: tuple[str, ...]
    scenarios: int
    scored: int | None = None
    """How many of them count, where the suite tells; the others may fail."""
    quick: bool = False
    """Whether `make test` runs it as well."""


def _version(date: str, scenarios: int, *, quick: bool = False) -> Leg:
    return Leg(date, ("--suite", "all", "--spec-version", date), scenarios, quick=quick)


def _requirements(date: str, scenarios: int, scored: int) -> Leg:
    return Leg(f"requirements {date}", ("--requirements", date), scenarios, scored)


LEGS = (
    _version("2025-03-26", 1),
    _version("2025-06-18", 27),
    _version("2025-11-25", 33, quick=True),
    _version("2026-07-28", 40, quick=True),
    _requirements("2025-11-25", 33, 30),
    _requirements("2026-07-28", 50, 37),
    Leg("all", ("--suite", "all", "--expected-failures", str(BASELINE)), 65),
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
    """Each check that failed or warned: its scenario, id, and what the suite says of it."""

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
        if self.exit_code:
            found.append(f"the suite ended with {self.exit_code}")
        if len(self.scenarios) != self.leg.scenarios:
            found.append(f"{len(self.scenarios)} scenarios were run, not {self.leg.scenarios}")
        if self.leg.scored is not None and self.scored != (self.leg.scored, self.leg.scored):
            found.append(f"{self.scored} of {self.leg.scored} scored scenarios are fine")
        if self.checks["WARNING"]:
            found.append(f"{self.checks['WARNING']} warnings")
        return found


def read_outcome(leg: Leg, folder: Path, *, exit_code: int, output: str, seconds: float) -> Outcome:
    """The outcome of `leg`, whose results the suite has written into `folder`."""
    outcome = Outcome(leg, exit_code, output, seconds)
    for path in sorted(folder.glob("server-*/checks.json")):
        name = re.sub(r"^server-|-\d{4}-\d\d-\d\dT[\d-]+Z$", "", path.parent.name)
        checks = json.loads(path.read_text())
        outcome.scenarios[name] = Counter(check["status"] for check in checks)
        outcome.faults += [
            f"{check['status']} {name}:{check['id']}: {check.get('errorMessage', '')}"
            for check in checks
            if check["status"] in ("FAILURE", "WARNING")
        ]
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
