"""The schema as statements that recreate it in an empty database.

PostgreSQL does not keep these statements, so they are built from its catalog. Each object comes after those on which
it depends. Owners, permissions, and objects of extensions are left out, and so are foreign servers, whose options may
contain secrets.
"""

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter

from servers.common.sql.schema.script import join_statements

from ..engine.link import Ask
from . import definitions

_HEAD = "SET check_function_bodies = off;"
"""Allows the script to create functions before the tables that they read."""
_BEFORE_VIEWS: Sequence[str] = (
    definitions.SCHEMAS,
    definitions.EXTENSIONS,
    definitions.TYPES,
    definitions.SEQUENCES,
    definitions.EARLY_FUNCTIONS,
    definitions.TABLES,
    definitions.OWNED_SEQUENCES,
)
_AFTER_VIEWS: Sequence[str] = (
    definitions.INDEXES,
    definitions.LATE_FUNCTIONS,
    definitions.FOREIGN_KEYS,
    definitions.RULES,
    definitions.TRIGGERS,
    definitions.POLICIES,
    definitions.COMMENTS,
)


async def read_schema(max_bytes: int, ask: Ask) -> str:
    """Return the statements, in at most `max_bytes` bytes, with the number of omitted ones. Raises SqlError."""
    statements: list[str] = []
    for query in _BEFORE_VIEWS:
        statements += [statement for (statement,) in await ask(query)]
    views: dict[int, str] = dict(await ask(definitions.VIEWS))
    sorter: TopologicalSorter[int] = TopologicalSorter(dict.fromkeys(views, ()))
    for view, required in await ask(definitions.VIEW_DEPENDENCIES):
        if view in views and required in views:
            sorter.add(view, required)
    try:
        order = list(sorter.static_order())
    except CycleError:
        # Views read each other only after CREATE OR REPLACE VIEW, and then none of them works anyway.
        order = sorted(views)
    statements += [views[oid] for oid in order]
    for query in _AFTER_VIEWS:
        statements += [statement for (statement,) in await ask(query)]
    ((path,),) = await ask("SELECT coalesce(nullif(pg_catalog.current_setting('search_path'), ''), '''')")
    return join_statements([f"SET search_path = {path};", _HEAD, *statements] if statements else [], max_bytes)
