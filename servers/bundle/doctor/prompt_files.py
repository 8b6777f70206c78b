"""The files of a library of prompts that are not served, or not as they are written, and libraries that could not be
fetched: its index names them."""

import json
from collections.abc import Iterator
from typing import NamedTuple

from shared.client.client import Client
from shared.errors import McpError
from shared.text import escape

from .findings import Finding, warning

# Those of servers/prompts, which loads its libraries with them.
_SERVER, _INDEX = "prompts", "prompt://"
_NAMED = 20
"""Files that have a finding of their own; `lint` names the others."""
_LONGEST = 300
"""Characters of a path, and of a reason."""


class PromptProblem(NamedTuple):
    """What a library says of a file, or of all of it."""

    what: str
    is_file: bool


class PromptProblems(NamedTuple):
    """The first problems of a library, and how many there are."""

    named: tuple[PromptProblem, ...]
    total: int


NO_PROBLEMS = PromptProblems((), 0)


async def read_problems(client: Client) -> PromptProblems:
    """The problems in the index of a server of prompts; none for any other server."""
    if client.server.info.get("name") != _SERVER or not client.server.can("resources"):
        return NO_PROBLEMS
    try:
        result = await client.plain.read_resource(_INDEX)
        problems = json.loads(result["contents"][0]["text"])["problems"]
        return PromptProblems(tuple(_parse(problem) for problem in problems[:_NAMED]), len(problems))
    except (McpError, ValueError, LookupError, TypeError):
        # A server of somebody else may have the name, and anything at the URI.
        return NO_PROBLEMS


def _parse(problem: dict[str, object]) -> PromptProblem:
    file, reason = str(problem["file"])[:_LONGEST], str(problem["reason"])[:_LONGEST]
    line = f":{problem['line']}" if problem["line"] else ""
    return PromptProblem(escape(f"{file}{line}: {reason}" if file else reason), bool(file))


def judge_problems(where: str, problems: PromptProblems) -> Iterator[Finding]:
    """A finding for each of the first files, and one for all others."""
    for problem in problems.named:
        fix = "correct the file; it is served as soon as it is right"
        if not problem.is_file:
            fix = "correct the address of --library, or its repository; mcp-bundle-prompts update tries again"
        yield warning(where, problem.what, fix)
    rest = problems.total - len(problems.named)
    if rest > 0:
        what = f"{rest:,} more of its files have something wrong"
        yield warning(where, what, "run mcp-bundle-prompts lint with its directories, which names them all")
