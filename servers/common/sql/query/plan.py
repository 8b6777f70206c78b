"""Shows the plan of a statement: a tree of steps, and the tables that are scanned completely."""

from collections.abc import Sequence

from typing_extensions import TypedDict

from shared.text import format_count

from ..schema.lines import ByteBudget
from ..texts import fence, format_name

_FRAME_BYTES = 300
"""Maximum size of a plan without its lists, in bytes."""


class PlanStep(TypedDict):
    """A step of a plan, as the database describes it."""

    level: int
    """Depth in the tree. The parent of a step is the last step before it with a smaller level."""
    detail: str


class Plan(TypedDict):
    """The plan of a statement."""

    steps: list[PlanStep]
    """The tree of steps; each step precedes its children."""
    scans: list[str]
    """Tables that are scanned completely, by the names that the statement uses: a table, an alias or a WITH name."""
    notes: list[str]
    """Further remarks."""
    truncated: bool
    ran: bool
    """True if the statement was run for the plan."""


def make_plan(
    steps: Sequence[PlanStep],
    scans: Sequence[str],
    limit: int,
    *,
    is_incomplete: bool,
    notes: Sequence[str] = (),
    ran: bool = False,
) -> Plan:
    """Return the plan in at most `limit` bytes. `is_incomplete` is True if `steps` lacks some of the steps."""
    budget = ByteBudget(limit - _FRAME_BYTES)
    shown_notes, more_notes = budget.split_off(1 / 4).select_fitting(notes, str) if notes else ([], 0)
    shown_scans, more_scans = budget.split_off(1 / 2).select_fitting(scans, format_name)
    shown_steps, more_steps = budget.select_fitting(steps, _format_step)
    truncated = is_incomplete or more_notes + more_scans + more_steps > 0
    return {
        "steps": shown_steps,
        "scans": shown_scans,
        "notes": shown_notes,
        "truncated": truncated,
        "ran": ran,
    }


def format_plan(plan: Plan) -> str:
    """Return a plan as text: the tree with indentation, and the tables that are scanned completely."""
    ran = "the statement was run" if plan["ran"] else "the statement was not run"
    heading = f"{format_count(len(plan['steps']), 'step')}{', truncated' if plan['truncated'] else ''}; {ran}"
    scans = [f"scanned in full: {', '.join(map(format_name, plan['scans']))}"] if plan["scans"] else []
    return "\n".join((heading, fence([*map(_format_step, plan["steps"]), *scans, *plan["notes"]])))


def _format_step(step: PlanStep) -> str:
    return "  " * step["level"] + step["detail"]
