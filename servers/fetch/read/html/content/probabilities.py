"""The probability of each line to be content, by a forest that was trained on pages of seven kinds.

Other trainings were no better on pages outside their training set: a second forest with the results of the first for
adjacent lines, also where these were cross-validated; the kind of the page, judged by a model of its own; more weight
for rare kinds; smaller trees; numbers of questions and ratings. The words of class names gave two thousandths of F1,
and would let a name decide. `tests/checks/training` shows how the forest was trained.
"""

from servers.fetch.read.html.content.declarations import Declarations
from servers.fetch.read.html.content.evidence import evidence
from servers.fetch.read.html.content.forest import load_forest
from servers.fetch.read.html.content.lines import Lines


def probabilities(page: Lines, declared: Declarations) -> list[float]:
    """Return the probability of each line, from 0 to 1."""
    return load_forest().judge(evidence(page, declared))
