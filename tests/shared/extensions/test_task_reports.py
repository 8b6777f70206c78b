"""What the status of a task says of how far it is."""

import pytest

from shared.extensions.tasks.hosted import Report


@pytest.mark.parametrize(
    ("report", "words"),
    [
        (Report(4, 10, "importing"), "importing, 40%"),
        (Report(4, 10, None), "40%"),
        (Report(11, 10, None), "100%"),
        (Report(1_200, None, "1,200 rows"), "1,200 rows"),
        (Report(1_200, None, None), "1200"),
    ],
)
def test_a_share_is_told_where_the_total_is_known(report: Report, words: str) -> None:
    assert str(report) == words
