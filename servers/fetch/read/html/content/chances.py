"""How likely each line is content, by a forest that was trained on pages of seven kinds.

A second forest, which saw what the first made of the lines around one, was tried: on pages that neither had learnt
from it was worse by half a hundredth of F1, since it trusted the first too much. `tests/checks/training` has how the
one that is left was trained.
"""

from servers.fetch.read.html.content.evidence import evidence
from servers.fetch.read.html.content.forest import load_forest
from servers.fetch.read.html.content.lines import Lines
from servers.fetch.read.html.content.said import Said


def chances(page: Lines, said: Said) -> list[float]:
    """The chance of each line, from 0 to 1."""
    return load_forest().judge(evidence(page, said))
