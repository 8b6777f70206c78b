"""Two runs of `make bench` beside each other, row by row.

python -m tests.checks.benchmarks.compare BEFORE.json AFTER.json

The change of a figure says little where the spreads overlap, and nothing where the peer's has changed as much: then
it was the machine.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.checks.benchmarks.report import NONE, OURS, figure, markdown
from tests.checks.benchmarks.results import Results
from tests.checks.benchmarks.targets import MEASURES

PEER = "SDK"
HEAD = ("measure", "unit", "before", "after", "change", "spreads overlap", f"{PEER}'s change")


def comparison(before: Results, after: Results) -> str:
    """The table of what was measured in both."""
    shared = [one for one in MEASURES if change(before, after, one.name, OURS) is not None]
    rows = [[one.name, one.unit, *_cells(before, after, one.name)] for one in shared]
    return "\n".join([*markdown(HEAD, rows), *_differences(before, after)])


def change(before: Results, after: Results, measure: str, server: str) -> float | None:
    """By how much of itself a median has changed; None where it was not measured both times."""
    old, new = before.median(measure, server), after.median(measure, server)
    return None if old is None or new is None or not old else new / old - 1


def overlap(before: Results, after: Results, measure: str) -> bool:
    """Whether some figure of ours could have come from either run."""
    old, new = before.spread(measure, OURS), after.spread(measure, OURS)
    return old is not None and new is not None and max(old[0], new[0]) <= min(old[1], new[1])


def _cells(before: Results, after: Results, measure: str) -> list[str]:
    medians = [figure(one.median(measure, OURS) or 0.0) for one in (before, after)]
    changes = [change(before, after, measure, server) for server in (OURS, PEER)]
    ours, peers = (NONE if one is None else f"{one:+.1%}" for one in changes)
    return [*medians, ours, "yes" if overlap(before, after, measure) else "no", peers]


def _differences(before: Results, after: Results) -> list[str]:
    """What else is not the same: rows of one run only, and machines."""
    lines = [
        f"Only in {which}: {'; '.join(sorted(one.samples.keys() - other.samples.keys()))}."
        for which, one, other in (("the first", before, after), ("the second", after, before))
        if one.samples.keys() - other.samples.keys()
    ]
    keys = [key for key in before.machine if before.machine[key] != after.machine.get(key)]
    lines += [f"Not the same: {key}, {before.machine[key]} and {after.machine.get(key)}." for key in keys]
    return ["", *lines] if lines else []


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the comparison of two files."""
    parser = argparse.ArgumentParser(prog="python -m tests.checks.benchmarks.compare")
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    options = parser.parse_args(arguments)
    try:
        print(comparison(Results.load(options.before), Results.load(options.after)))
    except (OSError, ValueError) as error:
        parser.error(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
