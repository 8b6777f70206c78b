"""Trees let each row down to the number that its values lead to, and a forest makes a chance of their sum."""

from math import exp

import pytest

from servers.fetch.read.html.content.forest import Forest, load_forest


def test_a_row_goes_where_its_values_lead() -> None:
    tree = [0, 1.5, -1.0, [1, 10, 0.0, 2.0]]
    forest = Forest(("size", "links"), [tree, 1.0])
    columns = {"links": [99.0, 10.0, 11.0], "size": [1.5, 2.0, 2.0]}
    assert forest.judge(columns) == pytest.approx([1 / (1 + exp(-odds)) for odds in (0, 1, 3)])


def test_what_is_shipped_is_small() -> None:
    assert len(load_forest().trees) <= 200
