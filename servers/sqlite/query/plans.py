"""How SQLite would run a statement, which it compiles for that and never runs."""

import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from itertools import islice

from typing_extensions import TypedDict

from servers.sqlite.engine.limits import StatementDeadline, retry_locked
from servers.sqlite.engine.sql import replace_parameters
from servers.sqlite.query.query import Query
from servers.sqlite.schema.lines import ByteBudget
from servers.sqlite.texts import fence, format_name, shorten

__all__ = ["Plan", "PlanStep", "explain", "format_plan"]

_STEPS = 500
_FRAME = 300
"""Bytes of a plan besides its lists."""
_DETAIL = 500
"""Characters."""
_SCAN = re.compile(r"SCAN (.+?)(?: USING (?:COVERING )?INDEX .+)?(?: LEFT-JOIN)?", re.DOTALL)
_NO_SCAN = re.compile(r"SCAN (?:CONSTANT ROW|\d+ CONSTANT ROWS?|\(.+|.+ VIRTUAL TABLE INDEX .+)", re.DOTALL)
_MADE = re.compile(r"(?:CO-ROUTINE|MATERIALIZE) (.+)", re.DOTALL)


class PlanStep(TypedDict):
    """A step of a plan, in the words of EXPLAIN QUERY PLAN."""

    level: int
    """How deep in the tree: it is part of the last step before it with a smaller one."""
    detail: str


class Plan(TypedDict):
    """A tree of steps, each before its parts."""

    steps: list[PlanStep]
    scans: list[str]
    """What is read whole: tables, or results of WITH under a second name, as the statement calls them."""
    truncated: bool


def explain(query: Query, most: int, connection: sqlite3.Connection, deadline: StatementDeadline) -> Plan:
    """The plan of one statement, in `most` bytes; its parameters may be left out.

    Raises SqliteError for what the connection may not do either.
    """
    # SQLite takes EXPLAIN before one statement only, and `sqlite3` no second statement.
    asked = f"EXPLAIN QUERY PLAN {query.sql if query.parameters else replace_parameters(query.sql)}"
    cursor = retry_locked(deadline, partial(connection.execute, asked, query.parameters))
    rows = list(islice(cursor, _STEPS + 1))
    cursor.close()
    children: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for step, parent, _, detail in rows[:_STEPS]:
        children[parent].append((step, shorten(detail, _DETAIL)))
    steps: list[PlanStep] = [{"level": level, "detail": detail} for level, detail in _walk(children)]
    budget = ByteBudget(most - _FRAME)
    scans, more_scans = budget.share(2).fitting(_find_scans([one["detail"] for one in steps]), format_name)
    shown_steps, more_steps = budget.fitting(steps, _format_step)
    truncated = len(rows) > _STEPS or more_scans + more_steps > 0
    return {"steps": shown_steps, "scans": scans, "truncated": truncated}


def format_plan(plan: Plan) -> str:
    """The tree, indented, and what is read whole."""
    head = f"{len(plan['steps'])} steps{', cut' if plan['truncated'] else ''}; the statement was not run"
    scans = [f"read whole: {', '.join(map(format_name, plan['scans']))}"] if plan["scans"] else []
    return "\n".join((head, fence([*map(_format_step, plan["steps"]), *scans])))


def _format_step(step: PlanStep) -> str:
    return "  " * step["level"] + step["detail"]


def _walk(children: dict[int, list[tuple[int, str]]]) -> Iterator[tuple[int, str]]:
    """Each step after the one that it is part of."""
    waiting = [(0, step, detail) for step, detail in reversed(children[0])]
    while waiting:
        level, step, detail = waiting.pop()
        yield level, detail
        waiting += [(level + 1, *child) for child in reversed(children[step])]


def _find_scans(details: list[str]) -> list[str]:
    made = {found[1] for found in map(_MADE.fullmatch, details) if found is not None}
    found = [_SCAN.fullmatch(detail) for detail in details if _NO_SCAN.fullmatch(detail) is None]
    return list(dict.fromkeys(one[1] for one in found if one is not None and one[1] not in made))
