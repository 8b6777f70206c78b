"""The schema as statements that recreate it in an empty database.

PostgreSQL does not keep these statements, so they are built from its catalog, in an order in which dependencies come
first. Owners, permissions, and objects of extensions are left out, and so are foreign servers, whose options may
contain secrets.
"""

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter

from servers.common.sql.schema.script import join_statements
from servers.postgres.engine.link import Ask
from servers.postgres.schema import definitions

_HEAD = "SET check_function_bodies = off;"
"""Functions come before the tables that they read."""
_PARTS: Sequence[str] = (
    definitions.SCHEMAS,
    definitions.EXTENSIONS,
    definitions.TYPES,
    definitions.SEQUENCES,
    definitions.EARLY_FUNCTIONS,
    definitions.TABLES,
    definitions.OWNED_SEQUENCES,
)
_LATER: Sequence[str] = (
    definitions.INDEXES,
    definitions.LATE_FUNCTIONS,
    definitions.FOREIGN_KEYS,
    definitions.RULES,
    definitions.TRIGGERS,
    definitions.POLICIES,
    definitions.COMMENTS,
)


async def read_schema(max_bytes: int, ask: Ask) -> str:
    """Return the statements, in at most `max_bytes` bytes; omitted ones are counted. Raises SqlError."""
    statements: list[str] = []
    for question in _PARTS:
        statements += [statement for (statement,) in await ask(question)]
    statements += await _read_views(ask)
    for question in _LATER:
        statements += [statement for (statement,) in await ask(question)]
    ((path,),) = await ask("SELECT coalesce(nullif(pg_catalog.current_setting('search_path'), ''), '''')")
    return join_statements([f"SET search_path = {path};", _HEAD, *statements] if statements else [], max_bytes)


async def _read_views(ask: Ask) -> list[str]:
    """Return each view after those that it reads."""
    views: dict[int, str] = dict(await ask(definitions.VIEWS))
    sorter: TopologicalSorter[int] = TopologicalSorter(dict.fromkeys(views, ()))
    for view, needed in await ask(definitions.VIEW_NEEDS):
        if view in views and needed in views:
            sorter.add(view, needed)
    try:
        return [views[oid] for oid in sorter.static_order()]
    except CycleError:
        # Two views can only read each other through CREATE OR REPLACE, and then neither can be run.
        return [views[oid] for oid in sorted(views)]
