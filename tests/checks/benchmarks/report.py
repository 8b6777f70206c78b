"""The results as a table in Markdown, with what is asked of us and whether it is met."""

from collections.abc import Sequence

from tests.checks.benchmarks.results import Results
from tests.checks.benchmarks.targets import LESS_IS_BETTER, Bound, Measure

BUNDLE_PACKAGE = "ours"
OTHERS = ("SDK", "npm", "floor")
ALSO = (
    "rg",
    "dbhub",
    "archived",
    "toolbox",
    "plain",
    "empty",
    "official",
    "trafilatura",
    "FastMCP",
    "Go",
    "raw",
    "direct",
)
"""Those that have a column where they were measured, and only there."""
NONE = "–"


def table(results: Results, measures: Sequence[Measure]) -> str:
    """Those rows that were measured, and under them why others were not."""
    others = (*OTHERS, *(one for one in ALSO if any(one in servers for servers in results.samples.values())))
    head = ["measure", "unit", BUNDLE_PACKAGE, "min–max", *others, *(f"{BUNDLE_PACKAGE}/{other}" for other in others)]
    rows = [_row(results, one, others) for one in measures if one.name in {*results.samples, *results.not_measured}]
    return "\n".join([*markdown([*head, "required", "met", "goal", "met"], rows), "", *_notes(results)])


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table; the first column to the left, figures to the right."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    line = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    cells = [[row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])] for row in (head, *rows)]
    return [f"| {' | '.join(row)} |" for row in [cells[0], line, *cells[1:]]]


def _row(results: Results, measure: Measure, others: Sequence[str]) -> list[str]:
    spread = results.spread(measure.name, BUNDLE_PACKAGE)
    return [
        measure.name,
        measure.unit,
        _median(results, measure, BUNDLE_PACKAGE),
        NONE if spread is None else f"{figure(spread[0])}–{figure(spread[1])}",
        *(_median(results, measure, other) for other in others),
        *(_ratio(results, measure, other) for other in others),
        _bounds(measure, measure.required),
        _verdict(results, measure, measure.required),
        _bounds(measure, measure.goal),
        _verdict(results, measure, measure.goal),
    ]


def _median(results: Results, measure: Measure, server: str) -> str:
    if server in results.not_measured.get(measure.name, {}):
        return "not measured"
    median = results.median(measure.name, server)
    return NONE if median is None else figure(median)


def _ratio(results: Results, measure: Measure, to: str) -> str:
    ratio = results.ratio(measure.name, BUNDLE_PACKAGE, to)
    return NONE if ratio is None else f"{ratio:.2f}"


def figure(value: float) -> str:
    """A figure with what is worth knowing of it: three digits, and all before the point."""
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f}"


def _bounds(measure: Measure, bounds: Sequence[Bound]) -> str:
    sign = "<=" if measure.unit in LESS_IS_BETTER else ">="
    return ", ".join(f"{sign} {one.limit:g} {(one.to and f'x {one.to}') or measure.unit}" for one in bounds) or NONE


def _verdict(results: Results, measure: Measure, bounds: Sequence[Bound]) -> str:
    """ "no" as soon as one bound is broken; "?" where one could not be looked at."""
    kept = [_kept(results, measure, bound) for bound in bounds]
    if False in kept:
        return "no"
    return "?" if None in kept else "yes" if kept else NONE


def _kept(results: Results, measure: Measure, bound: Bound) -> bool | None:
    name, to = measure.name, bound.to
    value = results.median(name, BUNDLE_PACKAGE) if to is None else results.ratio(name, BUNDLE_PACKAGE, to)
    return None if value is None else measure.keeps(bound, value)


def _notes(results: Results) -> list[str]:
    """Each reason once, with the servers it belongs to."""
    reasons: dict[str, set[str]] = {}
    for servers in results.not_measured.values():
        for server, reason in servers.items():
            reasons.setdefault(reason, set()).add(server)
    lines = [f"Not measured for {', '.join(sorted(servers))}: {reason}." for reason, servers in reasons.items()]
    machine = results.machine
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    size = f"{machine['cores']} cores, {machine['memory, GiB']} GiB, {machine['system']}"
    return [
        *lines,
        f"Medians of {results.rounds} rounds; ratios are taken within a round. {size}; {versions}. {results.date}",
    ]
