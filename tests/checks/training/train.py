"""Trains the forest that says which lines of a page are content, and writes it beside the code that asks it.

python -m tests.checks.training.train DEV

DEV is the folder `dev` of WCXB, of which half is learnt from. What is needed besides the project is in
`requirements.txt` here; nothing of it is needed to read a page. A run takes about five minutes.

Each tree tries one limit of a column at random, not all of them: pages differ more than lines do, and trees that
choose the best limits learn single pages by heart. A line counts by its share of the words of the page and of its
content, as it does in the measure.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import lightgbm
import numpy

from servers.common.html.tree import parse
from servers.fetch.read.html.content import forest
from servers.fetch.read.html.content.evidence import Columns, measure_lines
from servers.fetch.read.html.content.lines import Lines
from servers.fetch.read.html.deferred import expose_boundaries, place_deferred
from servers.fetch.read.html.page import prepare
from servers.fetch.read.text import decode
from tests.checks.benchmarks.fetch_kinds import Sample, read_samples, words_of
from tests.checks.training.labels import label

TREES = 200
SETTINGS = {
    "objective": "cross_entropy",
    "learning_rate": 0.07,
    "extra_trees": True,
    "num_leaves": 24,
    "min_data_in_leaf": 60,
    "min_sum_hessian_in_leaf": 5,
    "feature_fraction": 0.4,
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "lambda_l2": 5,
    "max_bin": 63,
    "num_threads": 1,
    "seed": 1,
    "verbose": -1,
}
MOST_LINES = 400
"""Of one page; of a longer one each second line is learnt, or each third."""
FILE = Path(forest.__file__).with_name("forest.json")

Matrix = Any
"""A numpy array of two dimensions: a row for each line."""


class Page(NamedTuple):
    """What is learnt from one page."""

    known: Columns
    labels: list[float]
    weights: list[float]


def main(folder: Path) -> None:
    """Train, and write the forest."""
    pages = [page for sample in read_samples(folder) if sample.learn and (page := read(sample)) is not None]
    names = list(pages[0].known)
    booster = train([_matrix(page.known, names) for page in pages], pages)
    FILE.write_text(json.dumps(_plain(booster, names), separators=(",", ":")) + "\n")


def read(sample: Sample) -> Page | None:
    """The evidence of a page's lines and their labels; None where it has no line or no content."""
    text, _ = decode(sample.html(), None, "text/html")
    root, _ = parse(expose_boundaries(text))
    place_deferred(root)
    visible = prepare(root, sample.url)
    body = visible.root.find("body")
    lines = Lines(body)
    truth = words_of(sample.truth)
    if not lines.lines or not truth:
        return None
    words = [words_of(line.text) for line in lines.lines]
    labels = label(words, truth)
    total = sum(map(len, words))
    content = max(50.0, sum(share * len(line) for share, line in zip(labels, words, strict=True)))
    weights = [min(0.5, (len(line) + 0.3) / (content + total / 4)) * 200 for line in words]
    return Page(measure_lines(lines, visible.declarations), labels, weights)


def train(rows: Sequence[Matrix], pages: Sequence[Page]) -> lightgbm.Booster:
    """A forest that learns from pages, each with a matrix of its own."""
    steps = [max(1, len(one) // MOST_LINES) for one in rows]
    joined = zip(rows, pages, steps, strict=True)
    values, labels, weights = zip(
        *((one[::step], page.labels[::step], [step * weight for weight in page.weights[::step]])
          for one, page, step in joined),
        strict=True,
    )  # fmt: skip
    data = lightgbm.Dataset(numpy.concatenate(values), numpy.concatenate(labels), weight=numpy.concatenate(weights))
    return lightgbm.train(SETTINGS, data, TREES)


def _matrix(columns: dict[str, list[float]], names: Sequence[str]) -> Matrix:
    return numpy.array([columns[name] for name in names], dtype=numpy.float32).T


def _plain(booster: lightgbm.Booster, names: Sequence[str]) -> dict[str, Any]:
    """The trees as `servers.fetch.read.html.content.forest` has them, and the columns that they ask for."""
    used: dict[int, int] = {}
    trees = [_tree(one["tree_structure"], used) for one in booster.dump_model()["tree_info"]]
    return {"columns": [names[number] for number in used], "trees": trees}


def _tree(node: dict[str, Any], used: dict[int, int]) -> Any:
    if "leaf_value" in node:
        return float(f"{node['leaf_value']:.3g}")
    column = used.setdefault(node["split_feature"], len(used))
    limit = float(f"{node['threshold']:.4g}")
    return [column, limit, _tree(node["left_child"], used), _tree(node["right_child"], used)]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
