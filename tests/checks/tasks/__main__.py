"""python -m tests.checks.tasks: what tasks cost with our servers and with their peers, and what mistakes come to."""

import sys
import tempfile
from pathlib import Path

from tests.checks.benchmarks.report import markdown
from tests.checks.tasks.suite import Area, Side, areas, mistakes
from tests.checks.tasks.task import Cost
from tests.npm import Unavailable

HEAD = ("task", "calls", "peer's", "bytes", "peer's", "verified")


def main() -> int:
    """Prints the tables; 1 where a task or a mistake did not end well with ours."""
    failed = False
    with tempfile.TemporaryDirectory() as name, areas() as every:
        folder = Path(name).resolve()
        for area in every:
            ours = _measure(area, folder / area.name / "ours", ours=True)
            theirs = None if area.theirs is None else _measure(area, folder / area.name / "theirs", ours=False)
            assert ours is not None
            print(f"{area.name}, beside {area.peer or 'nobody'}\n")
            print("\n".join(markdown(HEAD, _rows(area, ours, theirs))), "\n")
            failed |= not all(cost.verified for cost in ours.costs.values())
        lost = {name: why for name, why in mistakes(folder / "mistakes").items() if why}
    print(f"{len(lost)} mistakes were not mended by one further call")
    print("\n".join(f"- {name}: {why}" for name, why in lost.items()))
    return int(failed or bool(lost))


def _measure(area: Area, folder: Path, *, ours: bool) -> Side | None:
    folder.mkdir(parents=True)
    try:
        return area.measure(folder, ours=ours)
    except Unavailable as why:
        print(f"not measured: {why}", file=sys.stderr)
        return None


def _rows(area: Area, ours: Side, theirs: Side | None) -> list[list[str]]:
    others = {} if theirs is None else theirs.costs
    rows = [_row(task.name, ours.costs[task.name], others.get(task.name)) for task in area.tasks]
    both = [name for name in ours.costs if name in others]
    calls = [str(sum(side[name].calls for name in both)) for side in (ours.costs, others)]
    sizes = [f"{sum(side[name].size for name in both):,}" for side in (ours.costs, others)]
    rows.append(["those of both", *calls, *sizes, ""])
    definitions = "" if theirs is None else f"{theirs.definitions:,}"
    rows.append(["definitions", "", "", f"{ours.definitions:,}", definitions, ""])
    return rows


def _row(name: str, ours: Cost, theirs: Cost | None) -> list[str]:
    calls, size = ("–", "–") if theirs is None else (str(theirs.calls), f"{theirs.size:,}")
    verified = "yes" if ours.verified else "no"
    if theirs is not None and not theirs.verified:
        verified += ", peer's not"
    return [name, str(ours.calls), calls, f"{ours.size:,}", size, verified]


if __name__ == "__main__":
    sys.exit(main())
