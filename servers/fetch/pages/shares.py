"""One budget for several pages."""

from collections.abc import Sequence

__all__ = ["shares"]


def shares(lengths: Sequence[int], total: int) -> list[int]:
    """How many of its characters each page may show, where all together may show `total`: the same for each, and
    what a short one leaves goes to the others."""
    given = [0] * len(lengths)
    left = total
    shortest_first = sorted(range(len(lengths)), key=lambda which: lengths[which])
    for done, which in enumerate(shortest_first):
        given[which] = min(lengths[which], left // (len(lengths) - done))
        left -= given[which]
    return given
