"""Lists the tables and views of a database by name, and summarizes its schema.

Each kind of object takes one query.
"""

from collections.abc import Mapping, Sequence

from servers.common.sql.schema import overview
from servers.common.sql.schema.lines import ByteBudget
from servers.common.sql.schema.overview import DatabaseSummary, SchemaFacts, TableList, TablePage
from servers.common.sql.schema.records import TableColumn

from ..engine.link import Ask
from .columns import read_columns
from .entries import list_estimates, read_relations
from .indexes import read_foreign_keys, read_indexes


async def list_tables(page: TablePage, ask: Ask) -> TableList:
    """Return the requested page of the list of tables and views. Raises SqlError, with code `bad_cursor` for an
    invalid cursor."""
    relations = await read_relations(ask)
    columns = await read_columns(ask) if page.words else {}
    entries = []
    for relation in relations:
        relation_columns = columns.get(relation.oid, ())
        texts = [text for column in relation_columns for text in (column["name"], column.get("comment", ""))]
        if page.matches(relation.name, relation.comment, *texts):
            entries.append(relation.entry)
    return overview.list_page(entries, list_estimates(relations), page)


class _Columns:
    """The columns of all tables, which have already been read."""

    is_late = False

    def __init__(self, columns: Mapping[str, Sequence[TableColumn]]) -> None:
        self._columns = columns

    def read(self, name: str) -> Sequence[TableColumn]:
        """Return the columns of the table or view with that name."""
        return self._columns.get(name, ())

    read_in_time = read


async def summarize(
    name: str, writable: bool, budget: ByteBudget, ask: Ask, *, with_diagram: bool
) -> DatabaseSummary:
    """Summarize the database called `name`, and add a diagram if `with_diagram`. Raises SqlError."""
    relations = await read_relations(ask)
    columns = await read_columns(ask)
    facts = SchemaFacts(
        [relation.entry for relation in relations],
        await read_foreign_keys(ask),
        await read_indexes(ask),
        list_estimates(relations),
        _Columns({relation.name: columns.get(relation.oid, ()) for relation in relations}),
    )
    return overview.summarize(name, writable, facts, budget, with_diagram=with_diagram)
