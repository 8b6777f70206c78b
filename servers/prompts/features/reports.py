"""Reports problems to users, as log messages for clients that have set a log level."""

from collections.abc import Sequence

from shared.server.dispatch.conditions import Conditions
from shared.text import escape

from ..library.libraries import LibraryProblem

_MAX_REPORTED = 3
"""Maximum number of problems that are reported, since a library may have thousands. The index lists more."""
_MAX_LENGTH = 300
"""Maximum length of a problem, in characters."""


def report_problems(conditions: Conditions, problems: Sequence[LibraryProblem]) -> None:
    """Report the current problems of the libraries, instead of those that were reported before."""
    if not problems:
        conditions.end("problems")
        return
    texts = [f"{escape(root.name)}: {problem}"[:_MAX_LENGTH] for root, problem in problems[:_MAX_REPORTED]]
    if len(problems) > _MAX_REPORTED:
        texts.append(f"and {len(problems) - _MAX_REPORTED:,} more, listed in prompt://")
    conditions.begin("problems", "warning", f"problems in the library: {'; '.join(texts)}")
