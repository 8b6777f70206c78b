"""What the user is told beside results: log messages to clients that ask for their level."""

from collections.abc import Sequence

from shared.server.dispatch.conditions import Conditions
from shared.text import escape

from ..library.libraries import Found

_NAMED = 3
"""Problems that are told in full, of a library that may have thousands; the index has them all."""
_LONGEST = 300
"""Characters of one."""


def report_problems(conditions: Conditions, found: Sequence[Found]) -> None:
    """These files of the libraries can't be used as they are; no others, any more."""
    if not found:
        conditions.end("problems")
        return
    told = [f"{escape(root.name)}: {problem}"[:_LONGEST] for root, problem in found[:_NAMED]]
    if len(found) > _NAMED:
        told.append(f"and {len(found) - _NAMED:,} more, which prompt:// names")
    conditions.begin("problems", "warning", f"wrong in the library: {'; '.join(told)}")
