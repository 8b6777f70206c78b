"""Evaluates a forest of gradient-boosted decision trees on columns of numbers.

A tree is either a number, or a list of four items: a column, a threshold, and two trees. The first of these trees
applies to rows whose value in the column is at most the threshold, the second to other rows. All rows of a page are
passed down each tree together.

The forest for lines of pages was trained on seven kinds of pages. These additions were no better on pages outside
their training set: a second forest with the results of the first for adjacent lines, even if these were
cross-validated; the kind of the page, judged by a separate model; more weight for rare kinds; smaller trees; the
numbers of questions and ratings; the decisions of two other extractors; the position in the tree relative to the
headline. Words in class names gained 0.002 of F1, but would make the result depend on names; the words of lines and
headings gained 0.003, but would make it depend on a language. `tests/checks/training` shows how the forest was
trained.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from math import exp
from typing import Any, NamedTuple

_FILE = "forest.json"

Tree = float | list[Any]


class Forest(NamedTuple):
    """Decision trees. The sum of their values for a row is the logarithm of the odds that the row is content."""

    columns: Sequence[str]
    trees: Sequence[Tree]

    def judge(self, columns: Mapping[str, Sequence[float]]) -> list[float]:
        """Return the probability of each row, from 0 to 1."""
        values = [columns[name] for name in self.columns]
        rows = list(range(len(values[0])))
        odds = [0.0] * len(rows)
        for tree in self.trees:
            _add(tree, rows, values, odds)
        return [1 / (1 + exp(-log_odds)) for log_odds in odds]


@cache
def load_forest() -> Forest:
    """Return this package's forest, which is parsed once per process."""
    return Forest(**json.loads(files(__package__).joinpath(_FILE).read_text("ascii")))


def _add(tree: Tree, rows: list[int], values: Sequence[Sequence[float]], odds: list[float]) -> None:
    """Pass rows down a tree, and add to each row's `odds` the value of the leaf that it reaches."""
    while isinstance(tree, list):
        column, limit, lower, upper = tree
        feature = values[column]
        low = [row for row in rows if feature[row] <= limit]
        if len(low) == len(rows):
            tree = lower
        elif not low:
            tree = upper
        else:
            _add(lower, low, values, odds)
            rows = [row for row in rows if feature[row] > limit]
            tree = upper
    for row in rows:
        odds[row] += tree
