"""The tools that change databases."""

import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, Field

from shared import Data, MissingCapability, ToolError

from ..access.database import Database
from ..app import Ctx, app, read_only, room
from ..arguments import DatabaseArgument
from ..errors import SqliteError
from ..reading.query import Parameters, bound
from . import acts
from .acts import Answering
from .consent import Consent, Figures
from .results import WriteResult
from .session import Session, write
from .statements import Statement

T = TypeVar("T")
Statements = Annotated[list[str], Field(min_length=1, max_length=500)]

_FRAME = 2_000
"""Bytes of an answer around what it holds."""
_SHOWN = 1_000
"""Characters of SQL that a question shows."""


class _Agreement(BaseModel):
    """Nothing to fill in: to accept it is to agree."""


@app.tool(title="Write query", unavailable=read_only)
async def write_query(
    ctx: Ctx,
    query: Annotated[str | Statements, Field(description="one statement, or a list of them: all are done, or none")],
    parameters: Annotated[
        list[Any] | dict[str, Any], Field(description="as in read_query; for a list of statements one entry for each")
    ] = [],  # noqa: B006 - pydantic copies it
    dry_run: Annotated[bool, Field(description="show what would change, and change nothing")] = False,
    max_rows: Annotated[int | None, Field(ge=1, description="rows at most, of SELECT and RETURNING")] = None,
    database: DatabaseArgument = None,
) -> Data[WriteResult]:
    """Run statements that change data or the schema, in one transaction: all is committed, or nothing."""
    source = ctx.state.databases.named(database)
    statements = _statements(query, parameters)
    answering = Answering(room(ctx, max_rows), ctx.budget.result_bytes - _FRAME)
    if dry_run:
        done = await write(source, partial(acts.dry_run, statements, answering))
    else:
        done = await _agreed(ctx, source, query, partial(acts.execute, statements, answering, False))
    return Data(done.value, done.text)


@app.tool(title="Create table", unavailable=read_only, destructive=False)
async def create_table(
    ctx: Ctx,
    query: Annotated[str, Field(description="one CREATE TABLE statement")],
    database: DatabaseArgument = None,
) -> Data[WriteResult]:
    """Make a table with CREATE TABLE, and do nothing else; write_query makes all the rest of a schema."""
    source = ctx.state.databases.named(database)
    answering = Answering(room(ctx, None), ctx.budget.result_bytes - _FRAME)
    done = await _agreed(ctx, source, query, partial(acts.execute, [Statement(query)], answering, True))
    return Data(done.value, done.text)


def _statements(query: str | list[str], parameters: list[Any] | dict[str, Any]) -> list[Statement]:
    if isinstance(query, str):
        return [Statement(query, bound(parameters))]
    if not parameters:
        return [Statement(sql) for sql in query]
    if not isinstance(parameters, list) or len(parameters) != len(query):
        reason = f"for {len(query)} statements, parameters is no list of {len(query)} entries"
        raise SqliteError(
            "bad_parameters", reason, "Give one list or object for each statement; [] where it has none."
        )
    return [Statement(sql, _bound_one(given)) for sql, given in zip(query, parameters, strict=True)]


def _bound_one(given: Any) -> Parameters:
    if not isinstance(given, list | dict):
        raise SqliteError("bad_parameters", "the entry of a statement is neither a list nor an object of parameters")
    return bound(given)


async def _agreed(
    ctx: Ctx, source: Database, what: str | Sequence[str], act: Callable[[Consent, Session], T | Figures]
) -> T:
    """What `act` does, once the user has agreed to it where the operator wants that. Raises ToolError where the user
    does not agree, or can't be asked."""
    limit = ctx.state.settings.confirm
    done = await write(source, partial(act, Consent(limit)))
    if not isinstance(done, Figures):
        return done
    await _ask(ctx, source, what if isinstance(what, str) else ";\n".join(what), done)
    done = await write(source, partial(act, Consent(limit, done)))
    assert not isinstance(done, Figures)
    return done


async def _ask(ctx: Ctx, source: Database, what: str, figures: Figures) -> None:
    shown = what if len(what) <= _SHOWN else f"{what[:_SHOWN]} [cut: {len(what):,} characters]"
    # The key names these very changes: consent to some is none to others.
    key = hashlib.sha256(repr((source.name, what, figures)).encode("utf-8", "replace")).hexdigest()[:16]
    try:
        answer = await ctx.ask(f"change {key}", f"Change {source.name}? {figures}:\n{shown}", _Agreement)
    except MissingCapability:
        reason = "this server asks the user first, and this client can't be asked"
        raise ToolError(f"cannot_confirm: {reason}: {figures}") from None
    if answer.action != "accept":
        raise ToolError(f"declined: the user did not agree: {figures}")
