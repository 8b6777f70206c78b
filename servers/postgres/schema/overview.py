"""What is in a database: its tables and views by name, and all of its schema for an overview, with one question for
each kind of thing."""

from collections.abc import Iterator, Mapping, Sequence

from servers.common.sql.schema import overview
from servers.common.sql.schema.lines import ByteBudget
from servers.common.sql.schema.overview import DatabaseSummary, SchemaFacts, TableList, TablePage
from servers.common.sql.schema.records import TableColumn
from servers.postgres.engine.link import Ask
from servers.postgres.schema.columns import read_columns
from servers.postgres.schema.entries import list_estimates, read_relations
from servers.postgres.schema.indexes import read_foreign_keys, read_indexes


async def list_tables(page: TablePage, ask: Ask) -> TableList:
    """The tables and views that the page wants. Raises SqlError, `bad_cursor` among others."""
    found = await read_relations(ask)
    columns = await read_columns(ask) if page.words else {}
    wanted = [one.entry for one in found if page.wants(one.name, one.comment, *_list_texts(columns.get(one.oid, ())))]
    return overview.list_page(wanted, list_estimates(found), page)


def _list_texts(columns: Sequence[TableColumn]) -> Iterator[str]:
    for column in columns:
        yield column["name"]
        yield column.get("comment", "")


class _Columns:
    """The columns of all tables, which were read before."""

    is_late = False

    def __init__(self, columns: Mapping[str, Sequence[TableColumn]]) -> None:
        self._columns = columns

    def read(self, name: str) -> Sequence[TableColumn]:
        """Those of that table or view."""
        return self._columns.get(name, ())

    read_in_time = read


async def summarize(name: str, writable: bool, budget: ByteBudget, ask: Ask, *, drawn: bool) -> DatabaseSummary:
    """The summary of the database called `name`, with a diagram where it is to be `drawn`. Raises SqlError."""
    found = await read_relations(ask)
    columns = await read_columns(ask)
    facts = SchemaFacts(
        [one.entry for one in found],
        await read_foreign_keys(ask),
        await read_indexes(ask),
        list_estimates(found),
        _Columns({one.name: columns.get(one.oid, ()) for one in found}),
    )
    return overview.summarize(name, writable, facts, budget, drawn=drawn)
