"""Decision trees, and the forest that makes a probability of their sum."""

from math import exp

import pytest

from servers.fetch.read.html.content.forest import Forest, load_forest


def test_a_tree_sends_a_row_to_the_leaf_of_its_values() -> None:
    tree = [0, 1.5, -1.0, [1, 10, 0.0, 2.0]]
    forest = Forest(("size", "links"), [tree, 1.0])
    columns = {"links": [99.0, 10.0, 11.0], "size": [1.5, 2.0, 2.0]}
    assert forest.judge(columns) == pytest.approx([1 / (1 + exp(-odds)) for odds in (0, 1, 3)])


def test_the_shipped_forest_has_at_most_200_trees() -> None:
    assert len(load_forest().trees) <= 200
