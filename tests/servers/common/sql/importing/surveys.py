"""Surveys of texts and files without a database."""

from typing import Any

from servers.common.sql.importing.files import Opener, text_opener
from servers.common.sql.importing.survey import Plan, TargetTable, survey
from servers.common.sql.importing.tables import FormatRequest


class EndlessJob:
    """A job that is never stopped and reports nothing."""

    def check(self) -> None:
        """Do nothing."""

    def report(self, done: int, total: int | None, words: str) -> None:
        """Do nothing."""


def survey_all(source: str | Opener, expected: TargetTable = TargetTable(), **written: Any) -> Plan:  # noqa: B008
    """The import plan for a text or a file. Raises SqlError."""
    opener = text_opener(source) if isinstance(source, str) else source
    steps = survey(opener, FormatRequest(**written), expected, EndlessJob())
    while True:
        try:
            next(steps)
        except StopIteration as end:
            plan: Plan = end.value
            return plan


def columns_of(source: str | Opener, **written: Any) -> list[tuple[str, str]]:
    """The names and kinds of the columns of a text or a file."""
    return [(column.name, column.kind) for column in survey_all(source, **written).columns]
