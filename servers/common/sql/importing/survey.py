"""Makes the first pass over a file. It determines the format and, from all rows, the types of the columns."""

from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple

from shared.text import format_count

from ..errors import SqlError
from ..jobs import Progress
from .columns import Column, ColumnSurvey, DecimalMark, find_mark, parse_types, shorten
from .files import Opener, measure
from .layouts import Layout, find_layout, name_columns
from .readings import NO_VALUE, Kind
from .records import Records
from .tables import FormatRequest, Table, guess_encoding, open_table, read_table
from .workbooks import SheetRows

_PREVIEW_ROWS = 5
"""Number of rows that a preview shows."""
_NUMBERS: Sequence[Kind] = ("integer", "decimal", "boolean")
"""The kinds of columns that a column for numbers stores without a note."""
_MAX_LISTED = 20
"""Maximum number of columns in one list of a result."""


class Plan(NamedTuple):
    """How to import a file, as the survey has determined."""

    table: Table
    layout: Layout
    columns: Sequence[Column]
    rows: int
    first_rows: Sequence[Sequence[str | None]]
    """Some rows in the form in which they will be imported."""
    decisions: Sequence[str]
    """Sentences that explain how the file is read, and why."""


class TargetTable(NamedTuple):
    """The table that receives the rows."""

    columns: Sequence[tuple[str, str]] = ()
    """The names and declared types of the table's columns; empty if the table does not exist."""
    keeps_text: Callable[[str, Kind], bool] = lambda _declared, _kind: False
    """Returns True if a column of a declared type stores fields of a kind as they are written."""
    converts_text: Callable[[str], bool] = lambda _declared: False
    """Returns True if a column of a declared type stores text, but converts text that looks like a number."""
    name_bytes: int | None = None
    """Maximum length of the name of a column, in bytes; None if there is no limit."""
    max_columns: int | None = None
    """Maximum number of columns of a new table; None if there is no limit."""


def survey(
    opener: Opener, request: FormatRequest, target: TargetTable, progress: Progress
) -> Generator[None, None, Plan]:
    """Read all rows of a file, and return the plan for its import. The generator yields after each batch of rows.

    Raises SqlError if the file is not a table, or if a column is not of the type that the client gives.
    """
    codec: str | None = None
    while True:
        table = open_table(opener, request, codec)
        table_columns = [name for name, _ in target.columns]
        layout = find_layout(table.start, request.header, table_columns, is_grid=not table.encoding)
        try:
            return (yield from _survey_rows(opener, table, layout, request, target, progress))
        except UnicodeDecodeError as error:
            if table.encoding != "utf-8" or request.encoding is not None:
                reason = f"the text is not {table.encoding}: {error.reason}"
                raise SqlError("bad_csv", reason, "Specify encoding.") from None
        # The start of the file was valid UTF-8, but a later part is not, so guess the codec from more of the file.
        with opener() as file:
            codec = guess_encoding(file)


def _survey_rows(
    opener: Opener, table: Table, layout: Layout, request: FormatRequest, target: TargetTable, progress: Progress
) -> Generator[None, None, Plan]:
    surveys = [ColumnSurvey(None if request.nulls is None else frozenset(request.nulls)) for _ in range(layout.width)]
    first: Sequence[Sequence[str]] = ()
    with read_table(opener, table, request) as (file, rows):
        size, position = measure(file)

        def report() -> None:
            progress.check()
            progress.report(position(), 2 * size, f"{records.count:,} rows looked at")

        records = Records(rows, layout, report)
        for batch in records:
            first = first or batch[:_PREVIEW_ROWS]
            start = records.count - len(batch) + 1
            for column, fields in zip(surveys, zip(*batch, strict=True), strict=True):
                column.add(fields, start)
            yield
    names, renamed = name_columns(layout, target.name_bytes)
    width = _count_columns(layout, surveys)
    if isinstance(rows, SheetRows):
        marks = [rows.find_mark(column, request.decimal) for column in range(len(surveys))]
    else:
        marks = [find_mark(surveys, request.decimal, table.dialect.delimiter)] * len(surveys)
    types = parse_types(request.types)
    if unknown := types.keys() - {name.lower() for name in names}:
        raise SqlError("bad_csv", "types names a column that does not exist", quoted=[*unknown])
    if not target.columns and target.max_columns is not None and width > target.max_columns:
        reason = f"the file has {width:,} columns, and a table can have at most {target.max_columns:,}"
        advice = "Import it in parts with fewer columns each, or as rows of names and values."
        raise SqlError("too_large", reason, advice)
    declared = _find_declared_types(target, names[:width], has_header=layout.names is not None)
    columns = [
        _decide(column, name, mark, types.get(name.lower()), declared_type, target)
        for name, column, mark, declared_type in zip(names, surveys, marks, declared, strict=False)
    ]
    decisions = [
        f"read as: {'; '.join((*table.decisions, *layout.decisions))}",
        *table.notes,
        *_describe_columns(columns, surveys, marks, is_new=not target.columns),
        *_list_items(renamed, "named"),
        *_describe_rows(records, len(names) - width, is_grid=not table.encoding),
    ]
    first = first[: records.filled]
    converted = (column.convert(fields, None) for column, fields in zip(columns, zip(*first)))  # noqa: B905
    preview_rows = list(zip(*converted, strict=True))
    return Plan(table, layout, columns, records.filled, preview_rows, decisions)


def _decide(
    survey: ColumnSurvey,
    name: str,
    mark: DecimalMark,
    requested: str | None,
    declared: str | None,
    target: TargetTable,
) -> Column:
    """Return the column called `name`. `declared` is the type of this column in the table, None if the table does not
    have it. Raises SqlError."""
    column = survey.decide(name, mark, requested, is_new=declared is None)
    is_ambiguous = survey.is_ambiguous(mark)
    kind: Kind = "decimal" if is_ambiguous else column.kind
    if declared is None or requested is not None:
        return column
    if kind not in _NUMBERS and not survey.is_empty and target.converts_text(declared):
        column = column._replace(note=f"{column.note or kind}, though the column is declared {shorten(declared)}")
    if kind == "text":
        return column
    if target.keeps_text(declared, kind):
        return survey.decide(name, mark, "text")
    if is_ambiguous:
        # The database would read 1.234 according to its own rules.
        raise survey.ambiguity_error(name)
    return column


def _find_declared_types(target: TargetTable, names: Sequence[str], *, has_header: bool) -> list[str | None]:
    """Return, for each column of the file, the declared type of the table's column that receives it; None if the
    table has no such column."""
    existing = target.columns if has_header else [(name, kind) for name, (_, kind) in zip(names, target.columns)]  # noqa: B905
    by_name = {name.lower(): kind for name, kind in existing}
    return [by_name.get(name.lower()) for name in names]


def _count_columns(layout: Layout, surveys: Sequence[ColumnSurvey]) -> int:
    """Return the number of columns, not counting columns at the end that have neither a name nor a value."""
    width = layout.width
    while layout.names and width > 1 and not layout.names[width - 1].strip() and surveys[width - 1].is_empty:
        width -= 1
    return width


def _describe_columns(
    columns: Sequence[Column], surveys: Sequence[ColumnSurvey], decimal_marks: Sequence[DecimalMark], *, is_new: bool
) -> list[str]:
    marks: dict[str, int] = {}
    for column, survey in zip(columns, surveys, strict=False):
        text_counts = {NO_VALUE: survey.text_null_count} if survey.text_null_count else {}
        for field, count in (survey.null_counts if column.reading is not None else text_counts).items():
            marks[field.strip()] = marks.get(field.strip(), 0) + count
    sentences = ['decimal mark ","'] if any(mark.mark == "," for mark in decimal_marks) else []
    if marks:
        listed = ", ".join(f"{shorten(field)!r} ({count:,})" for field, count in marks.items())
        sentences.append(f"read as NULL, like empty fields: {listed}")
    if any(column.reading is not None and column.reading.rewrite is not None for column in columns):
        rewritten = [column for column in columns if column.reading is not None and column.reading.rewrite]
        sentences += _list_items(
            [f"{column.name} as {column.kind}" for column in rewritten], "written in another form"
        )
    noted = [column for column in columns if column.note]
    as_text = "kept as text" if is_new else "passed to the table unchanged"
    sentences += _list_items([f"{column.name} ({column.note})" for column in noted if column.kind == "text"], as_text)
    sentences += _list_items([f"{column.name} ({column.note})" for column in noted if column.kind != "text"], "note")
    return sentences


def _describe_rows(records: Records, left_out: int, *, is_grid: bool) -> list[str]:
    sentences = []
    # In a grid, a short row only has empty cells at its end.
    if records.padded and not is_grid:
        rows = "1 short row was" if records.padded == 1 else f"{records.padded:,} short rows were"
        sentences.append(f"{rows} filled with NULL, first {records.first_padded}")
    if records.comments:
        sentences.append(f"{format_count(records.comments, 'comment')} below the first row left out")
    if empty := records.count - records.filled:
        sentences.append(f"{format_count(empty, 'row')} at the end left out, without any value")
    if left_out:
        sentences.append(
            f"{format_count(left_out, 'column')} at the end left out, which have neither a name nor a value"
        )
    return sentences


def _list_items(items: Sequence[str], title: str) -> list[str]:
    if not items:
        return []
    more = f", and {len(items) - _MAX_LISTED:,} more" if len(items) > _MAX_LISTED else ""
    return [f"{title}: {'; '.join(items[:_MAX_LISTED])}{more}"]
