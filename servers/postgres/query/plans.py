"""Plans of statements, estimated or measured, with notes on wrong estimates and on indexes."""

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import anyio

from servers.common.sql.errors import SqlError
from servers.common.sql.query.plan import Plan, PlanStep, make_plan
from servers.common.sql.texts import SqlName, format_name, shorten
from shared.text import join_lines

from ..catalog import Session
from ..engine.answers import Cell
from ..engine.deadline import Deadline
from ..engine.link import Ask
from ..health.indexes import Node, ScannedTable, suggest_indexes

_MAX_STEPS = 500
"""Maximum number of steps of a plan that are shown."""
_MAX_DETAIL_LENGTH = 500
"""Maximum number of characters of a condition."""
_SMALL_TABLE_BYTES = 8 * 8192
"""Maximum size of a small table in bytes. A complete scan of a small table is not worth a note."""
_WRONG_FACTOR = 10
"""An estimate is wrong if expected and actual numbers of rows differ by at least this factor."""
_MAX_NOTES = 3
"""Maximum number of notes on wrong estimates."""
_STATEMENT_NAME = "mcp_bundle_plan"
_CLEANUP_SECONDS = 5.0
"""Maximum number of seconds for removing the prepared statement."""

_PLACEHOLDER = re.compile(r"\$\d")
_CONDITIONS = ("Index Cond", "Hash Cond", "Merge Cond", "Recheck Cond", "Join Filter", "Filter", "One-Time Filter",
               "TID Cond", "Sort Key", "Group Key")  # fmt: skip

_TABLES = """
    SELECT n.nspname::pg_catalog.text, c.relname::pg_catalog.text, c.oid,
        c.oid::pg_catalog.regclass::pg_catalog.text, pg_catalog.pg_relation_size(c.oid)
    FROM ROWS FROM (pg_catalog.unnest($1::pg_catalog.text[]), pg_catalog.unnest($2::pg_catalog.text[]))
        AS w(schema, name)
    JOIN pg_catalog.pg_namespace AS n ON n.nspname = w.schema
    JOIN pg_catalog.pg_class AS c ON c.relnamespace = n.oid AND c.relname = w.name"""


class _Step(NamedTuple):
    """A node of the plan, with its depth in the tree."""

    level: int
    node: Node


async def explain(
    sql: str, parameters: Sequence[Cell], limit: int, session: Session, *, analyze: bool = False
) -> Plan:
    """Return the plan of one statement, in at most `limit` bytes.

    If the statement has parameters but no values are given, return the generic plan, for any values. With `analyze`,
    also run the statement, in the current transaction, which must be read-only.
    """

    async def find_cost() -> float:
        root = await _explain(session, sql, parameters, analyze=False)
        return float(root["Plan"]["Total Cost"])

    root = await _explain(session, sql, parameters, analyze=analyze)
    steps: list[_Step] = []
    pending = [_Step(0, root["Plan"])]
    while pending:
        step = pending.pop()
        steps.append(step)
        pending += [_Step(step.level + 1, part) for part in reversed(step.node.get("Plans", []))]
    nodes = [step.node for step in steps]
    tables = await _find_scans(session.ask, nodes)
    plan_steps: list[PlanStep] = [
        {"level": step.level, "detail": _format_node(step.node)} for step in steps[:_MAX_STEPS]
    ]
    notes = [f"planning {root['Planning Time']:g} ms, execution {root['Execution Time']:g} ms"] if analyze else []
    notes += _note_wrong_estimates(steps)
    notes += await suggest_indexes(session.ask, tables, nodes, find_cost)
    names = list(dict.fromkeys(SqlName(table.name) for table in tables))
    return make_plan(plan_steps, names, limit, is_incomplete=len(steps) > _MAX_STEPS, notes=notes, ran=analyze)


async def _explain(session: Session, sql: str, parameters: Sequence[Cell], *, analyze: bool) -> dict[str, Any]:
    options = "ANALYZE, BUFFERS, TIMING" if analyze else "COSTS"
    # VERBOSE adds the schemas of tables. (It also adds the output columns of each step, which are not shown.)
    command = f"EXPLAIN ({options}, VERBOSE, FORMAT JSON) "
    if parameters or _PLACEHOLDER.search(sql) is None:
        result = await session.run(sql, parameters, prefix=command)
    else:
        result = await _explain_generically(session, sql, command, runs=analyze)
    ((text,),) = result.rows
    (root,) = json.loads(text or b"[{}]")
    return dict(root)


async def _explain_generically(session: Session, sql: str, command: str, *, runs: bool) -> Any:
    """Explain a statement without values for its parameters. Raises SqlError if it has any and `command` runs it."""
    await session.ask(f"SAVEPOINT {_STATEMENT_NAME}")
    try:
        await session.run(sql, (), prefix=f"PREPARE {_STATEMENT_NAME} AS ")
        ((count,),) = await session.ask(
            "SELECT pg_catalog.cardinality(p.parameter_types) FROM pg_catalog.pg_prepared_statements AS p "
            "WHERE p.name = $1",
            _STATEMENT_NAME,
        )
        if runs and count:
            advice = "Pass one value for each of $1, $2 and so on, or omit analyze."
            raise SqlError("bad_parameters", "the values of the parameters are missing, so it can't be run", advice)
        # EXPLAIN (GENERIC_PLAN) exists only since PostgreSQL 16, and this server supports 13 as well.
        await session.ask("SELECT pg_catalog.set_config('plan_cache_mode', 'force_generic_plan', true)")
        values = f"({', '.join(['NULL'] * count)})" if count else ""
        return await session.run(f"{command} EXECUTE {_STATEMENT_NAME}{values}", ())
    finally:
        # Remove the prepared statement: it outlives the transaction, and other calls will use the connection.
        deadline = Deadline(_CLEANUP_SECONDS)
        with anyio.CancelScope(shield=True), suppress(SqlError):
            await session.run(f"ROLLBACK TO SAVEPOINT {_STATEMENT_NAME}", (), deadline=deadline)
            await session.run(f"DEALLOCATE {_STATEMENT_NAME}", (), deadline=deadline)


async def _find_scans(ask: Ask, nodes: Sequence[Node]) -> list[ScannedTable]:
    """Return the tables that are scanned completely, without small ones."""
    scans = [node for node in nodes if node["Node Type"] == "Seq Scan" and "Schema" in node]
    if not scans:
        return []
    scanned_names = sorted({(node["Schema"], node["Relation Name"]) for node in scans})
    rows = await ask(_TABLES, [schema for schema, _ in scanned_names], [name for _, name in scanned_names])
    large_tables = {
        (schema, name): (oid, regclass)
        for schema, name, oid, regclass, size in rows
        if (size or 0) > _SMALL_TABLE_BYTES
    }
    return [
        ScannedTable(*large_tables[node["Schema"], node["Relation Name"]], node["Alias"])
        for node in scans
        if (node["Schema"], node["Relation Name"]) in large_tables
    ]


def _format_node(node: Node) -> str:
    """Format a step on one line: its kind, its table, its conditions, and its cost."""
    parts = [_name_node(node)]
    for title in _CONDITIONS:
        if title in node:
            value = node[title] if isinstance(node[title], str) else ", ".join(node[title])
            parts.append(f"{title.lower()} {shorten(join_lines(value), _MAX_DETAIL_LENGTH)}")
    costs = f"(cost {node['Startup Cost']:g}..{node['Total Cost']:g}, rows {node['Plan Rows']})"
    return "; ".join(parts) + f" {costs}{_format_actual(node)}"


def _name_node(node: Node) -> str:
    phrases = [node["Node Type"]]
    if node.get("Parallel Aware"):
        phrases.insert(0, "Parallel")
    if node.get("Strategy") in ("Hashed", "Sorted", "Mixed"):
        phrases.insert(0, node["Strategy"])
    if "Join Type" in node and node["Join Type"] != "Inner":
        phrases.append(node["Join Type"])
    if "Operation" in node and node["Node Type"] == "ModifyTable":
        phrases = [node["Operation"]]
    if "Index Name" in node:
        phrases.append(f"using {format_name(node['Index Name'])}")
    target = next((node[key] for key in ("Relation Name", "Function Name", "CTE Name") if key in node), None)
    if target is not None:
        phrases.append(f"on {format_name(target)}")
    if node.get("Alias") not in (None, target):
        phrases.append(format_name(node["Alias"]))
    prefix = f"{join_lines(node['Subplan Name'])}: " if "Subplan Name" in node else ""
    return prefix + " ".join(phrases)


def _format_actual(node: Node) -> str:
    if "Actual Loops" not in node:
        return ""
    if node["Actual Loops"] == 0:
        return " (never run)"
    read, hit = node.get("Shared Read Blocks", 0), node.get("Shared Hit Blocks", 0)
    removed = f", {node['Rows Removed by Filter']} filtered out" if node.get("Rows Removed by Filter") else ""
    spilled = f", {node['Temp Written Blocks']} temporary pages" if node.get("Temp Written Blocks") else ""
    loops = f" in each of {node['Actual Loops']} loops" if node["Actual Loops"] > 1 else ""
    return (
        f" (actual rows {node['Actual Rows']:g}{removed}, {node['Actual Total Time']:g} ms{loops}, "
        f"{hit + read} pages, {read} not cached{spilled})"
    )


def _note_wrong_estimates(steps: Sequence[_Step]) -> list[str]:
    notes = []
    is_cut_short = any(step.node["Node Type"] == "Limit" for step in steps)
    for _, node in steps:
        if not node.get("Actual Loops"):
            continue
        expected, actual = max(node["Plan Rows"], 1), max(node["Actual Rows"], 1)
        # Fewer rows than expected show a wrong estimate only if a condition removed the others. Without a condition,
        # or below a LIMIT, perhaps no more rows were requested.
        is_filtered = not is_cut_short and ("Filter" in node or "Index Cond" in node)
        if actual >= _WRONG_FACTOR * expected or (is_filtered and expected >= _WRONG_FACTOR * actual):
            name = _name_node(node)
            notes.append(f"{name}: {node['Plan Rows']} rows were expected, but {node['Actual Rows']:g} were returned")
    if notes:
        notes = [*notes[:_MAX_NOTES], "ANALYZE of these tables, or CREATE STATISTICS, improves estimates"]
    return notes
