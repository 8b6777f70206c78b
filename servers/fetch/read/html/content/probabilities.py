"""The probability of each line to be content, by a forest that was trained on pages of seven kinds.

A second forest, with the results of the first for the adjacent lines, was tried: on pages outside the training set of
both it was worse by half a hundredth of F1, since it trusted the first too much. `tests/checks/training` shows how
the remaining one was trained.
"""

from servers.fetch.read.html.content.declarations import Declarations
from servers.fetch.read.html.content.evidence import evidence
from servers.fetch.read.html.content.forest import load_forest
from servers.fetch.read.html.content.lines import Lines


def probabilities(page: Lines, declared: Declarations) -> list[float]:
    """Return the probability of each line, from 0 to 1."""
    return load_forest().judge(evidence(page, declared))
