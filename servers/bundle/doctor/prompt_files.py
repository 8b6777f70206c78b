"""Problems of prompt libraries, which the server of prompts lists in its index: files that it can't serve, or not as
they are written, and libraries that it could not fetch."""

import json
from collections.abc import Iterator
from typing import NamedTuple

from shared.client.client import Client
from shared.errors import McpError
from shared.text import escape

from .findings import Finding, warning

# Copied from servers/prompts, since importing that would load its libraries.
_SERVER, _INDEX = "prompts", "prompt://"
_MAX_NAMED_PROBLEMS = 20
"""Maximum number of problems that are reported individually."""
_MAX_LENGTH = 300
"""Maximum length of a path or reason, in characters."""


class PromptProblem(NamedTuple):
    """A problem of one file, or of a whole library."""

    what: str
    is_file: bool


class PromptProblems(NamedTuple):
    """The first problems of a server's libraries, and the total number."""

    named: tuple[PromptProblem, ...]
    total: int


NO_PROBLEMS = PromptProblems((), 0)


async def read_problems(client: Client) -> PromptProblems:
    """Return the problems in the index of the bundle's server of prompts; none for any other server."""
    if client.server.info.get("name") != _SERVER or not client.server.can("resources"):
        return NO_PROBLEMS
    try:
        result = await client.raw.read_resource(_INDEX)
        problems = json.loads(result["contents"][0]["text"])["problems"]
        named: list[PromptProblem] = []
        for problem in problems[:_MAX_NAMED_PROBLEMS]:
            file, reason = str(problem["file"])[:_MAX_LENGTH], str(problem["reason"])[:_MAX_LENGTH]
            line = f":{problem['line']}" if problem["line"] else ""
            named.append(PromptProblem(escape(f"{file}{line}: {reason}" if file else reason), bool(file)))
        return PromptProblems(tuple(named), len(problems))
    except (McpError, ValueError, LookupError, TypeError):
        # A third-party server with the same name may have anything at this URI.
        return NO_PROBLEMS


def problem_findings(where: str, problems: PromptProblems) -> Iterator[Finding]:
    """Yield a finding for each of the first problems, and one for all others."""
    for problem in problems.named:
        fix = "correct the file; it is served once it is valid"
        if not problem.is_file:
            fix = "correct the address of --library, or its repository; then run mcp-bundle-prompts update"
        yield warning(where, problem.what, fix)
    rest = problems.total - len(problems.named)
    if rest > 0:
        what = f"{rest:,} more of its files have problems"
        yield warning(where, what, "run mcp-bundle-prompts lint with its directories, which lists them all")
