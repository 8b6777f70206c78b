"""The probability that each line is content, from a forest trained on seven kinds of pages.

Other approaches were no better on pages outside their training set: a second forest with the results of the first for
adjacent lines, even if these were cross-validated; the kind of the page, judged by a separate model; more weight for
rare kinds; smaller trees; the numbers of questions and ratings; the decisions of two other extractors; the position
in the tree relative to the headline. Words in class names gained 0.002 of F1, but would make the result depend on
names; the words of lines and headings gained 0.003, but would make it depend on a language. `tests/checks/training`
shows how the forest was trained.
"""

from servers.fetch.read.html.content.declarations import Declarations
from servers.fetch.read.html.content.evidence import measure_lines
from servers.fetch.read.html.content.forest import load_forest
from servers.fetch.read.html.content.lines import Lines


def probabilities(page: Lines, declared: Declarations) -> list[float]:
    """Return the probability of each line, from 0 to 1."""
    return load_forest().judge(measure_lines(page, declared))
