"""Consent to changes: when it is needed, and the description of the changes."""

import pytest

from servers.common.sql.errors import SqlError
from servers.common.sql.write.consent import Consent, Figures

FOUR = Figures(4, (2,), ("child", "t"), False)


def test_figures_are_described_in_words() -> None:
    descriptions = {
        Figures(0, (0,), (), False): "0 rows change",
        Figures(1, (1,), ("t",), False): "1 row changes (t)",
        Figures(2, (2,), ("t",), False): "2 rows change (t)",
        Figures(1_234, (1_234,), ("child", "t"), False): "1,234 rows change (child, t)",
        Figures(0, (0,), (), True): "the schema changes",
        Figures(5, (5,), ("t",), True): "the schema changes and 5 rows change (t)",
    }
    assert {figures: str(figures) for figures in descriptions} == descriptions


def test_changes_up_to_the_row_limit_need_no_consent() -> None:
    defines = FOUR._replace(schema_changed=True)
    cases = [(None, defines), (4, FOUR), (3, FOUR), (4, defines), (0, FOUR._replace(rows=0))]
    assert [Consent(rows).covers(figures) for rows, figures in cases] == [True, True, False, False, True]


def test_consent_does_not_cover_other_changes() -> None:
    agreed = Consent(1, FOUR)
    assert agreed.covers(FOUR)
    for others in (FOUR._replace(rows=5), FOUR._replace(affected=(3,)), FOUR._replace(tables=("child",))):
        with pytest.raises(SqlError, match="changed since the user was asked"):
            agreed.covers(others)
