"""Schemas, tables and rows as resources under `postgres:` URIs, and the prompt that has a model explore a database in
a good order.
"""

from typing import Annotated

from pydantic import Field

from servers.common.sql.features import resources
from servers.common.sql.features.context import Ctx, Opened
from servers.common.sql.features.resources import JSON, SQL
from shared import Features

_SCHEMA = "postgres:///{db}/schema"
_TABLE = "postgres:///{db}/{table}"
_ROW = "postgres:///{db}/{table}/{+key}"

features = Features[Opened]()
features.lists_resources(resources.list_resources)
for _template in (_SCHEMA, _TABLE, _ROW):
    features.completes("resource", _template, "db")(resources.complete_database)
for _template in (_TABLE, _ROW):
    features.completes("resource", _template, "table")(resources.complete_table)
features.completes("resource", _ROW, "key")(resources.complete_key)
features.completes("prompt", "explore_database", "database")(resources.complete_database)


@features.resource(_SCHEMA, name="schema", title="The schema of a database", mime_type=SQL)
async def read_schema(ctx: Ctx, db: str) -> str:
    """SQL that makes the types, tables, indexes, views and triggers again."""
    return await resources.read_schema(ctx, db)


@features.resource(_TABLE, name="table", title="A table or view of a database", mime_type=JSON)
async def read_table(ctx: Ctx, db: str, table: str) -> str:
    """The first rows, as JSON, and how to go on where there are more."""
    return await resources.read_table(ctx, db, table)


@features.resource(_ROW, name="row", title="A row of a table, by its key", mime_type=JSON)
async def read_row(ctx: Ctx, db: str, table: str, key: str) -> str:
    """One row, as JSON. The key is the primary key; several values stand between
    commas, each percent-encoded."""
    return await resources.read_row(ctx, db, table, key)


@features.prompt(title="Explore a database")
async def explore_database(
    ctx: Ctx,
    topic: Annotated[str, Field(description="what to find out")] = "",
    database: Annotated[str, Field(description="its name; all where none is given")] = "",
) -> str:
    """Explore a database step by step and note what is found."""
    return resources.guide_exploration(ctx, "PostgreSQL", topic, database)
