"""How likely each line is content, by two forests that were trained on pages of seven kinds.

The first judges a line by its evidence alone. The second sees what the first made of the lines beside it, of those in
the same blocks and of the same shape, and of the page: lists, tables and threads are content as a whole, or not.
`tests/checks/training` has how they were trained.
"""

from itertools import accumulate

from servers.fetch.read.html.content.evidence import Columns, Evidence, Span, beside, evidence, shifted, sums
from servers.fetch.read.html.content.forest import load_forests
from servers.fetch.read.html.content.lines import Lines


def chances(page: Lines, title: str) -> list[float]:
    """The chance of each line, from 0 to 1."""
    first, second = load_forests()
    known = evidence(page, title)
    judged = first.judge(known.columns)
    return second.judge(known.columns | second_evidence(known, judged))


def second_evidence(known: Evidence, judged: list[float]) -> Columns:
    """What the chances of lines say of those around them."""
    # A line counts by its length; that of a single letter counts, too.
    weights = [1.0 + chars for chars in known.columns["chars"]]
    values = [chance * weight for chance, weight in zip(judged, weights, strict=True)]
    total, size = sums(values), sums(weights)
    columns = {"chance": judged}
    columns |= {f"chance{steps:+d}": shifted(judged, steps) for steps in (-2, -1, 1, 2)}
    columns |= {f"chance_beside_{width}": beside(judged, width, weights) for width in (2, 5, 12, 30)}
    for level, spans in enumerate(known.around):
        columns[f"chance_around_{level}"] = [_mean(total, size, span) for span in spans]
    for kind, shapes in enumerate(known.shapes):
        columns[f"chance_shape_{kind}"] = _by_shape(shapes, values, weights)
    count = len(judged)
    columns["chance_before"] = [_mean(total, size, Span(max(0, line - 8), line)) for line in range(count)]
    columns["chance_after"] = [_mean(total, size, Span(line + 1, min(count, line + 9))) for line in range(count)]
    columns["chance_page"] = [total[-1] / size[-1]] * count
    columns["chance_most"] = [max(judged)] * count
    columns["chances_before"] = [before / total[-1] for before in total[:-1]]
    columns["best_before"] = [0.0, *accumulate(judged, max)][:-1]
    columns["best_after"] = [*accumulate(reversed(judged), max)][::-1]
    return columns


def _mean(total: list[float], size: list[float], span: Span) -> float:
    first, end = span
    return (total[end] - total[first]) / (size[end] - size[first]) if first < end else 0.0


def _by_shape(shapes: list[int], values: list[float], weights: list[float]) -> list[float]:
    totals: dict[int, float] = {}
    sizes: dict[int, float] = {}
    for shape, value, weight in zip(shapes, values, weights, strict=True):
        totals[shape] = totals.get(shape, 0.0) + value
        sizes[shape] = sizes.get(shape, 0.0) + weight
    return [totals[shape] / sizes[shape] for shape in shapes]
