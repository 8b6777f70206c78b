"""The files of a library of prompts that are not served, or not as they are written: its index names them."""

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


class PromptProblems(NamedTuple):
    """What a library says of its files."""

    named: tuple[str, ...]
    total: int


NO_PROBLEMS = PromptProblems((), 0)


async def read_problems(client: Client) -> PromptProblems:
    """The problems in the index of a server of prompts; none for any other server."""
    if client.server.info.get("name") != _SERVER or not client.server.can("resources"):
        return NO_PROBLEMS
    try:
        result = await client.plain.read_resource(_INDEX)
        problems = json.loads(result["contents"][0]["text"])["problems"]
        return PromptProblems(tuple(_format(problem) for problem in problems[:_NAMED]), len(problems))
    except (McpError, ValueError, LookupError, TypeError):
        # A server of somebody else may have the name, and anything at the URI.
        return NO_PROBLEMS


def _format(problem: dict[str, object]) -> str:
    line = f":{problem['line']}" if problem["line"] else ""
    return escape(f"{str(problem['file'])[:_LONGEST]}{line}: {str(problem['reason'])[:_LONGEST]}")


def judge_problems(where: str, problems: PromptProblems) -> Iterator[Finding]:
    """A finding for each of the first files, and one for all others."""
    for problem in problems.named:
        yield warning(where, problem, "correct the file; it is served as soon as it is right")
    rest = problems.total - len(problems.named)
    if rest > 0:
        what = f"{rest:,} more of its files have something wrong"
        yield warning(where, what, "run mcp-bundle-prompts lint with its directories, which names them all")
