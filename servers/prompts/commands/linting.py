"""`lint`: what is wrong with prompts."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from servers.prompts.commands.output import counted, opened, say
from servers.prompts.errors import Problem
from servers.prompts.linting import lint as linted
from servers.prompts.linting import tokens

__all__ = ["lint"]


class _Size(NamedTuple):
    name: str
    path: str
    bytes: int
    tokens_estimate: int


def lint(roots: Sequence[Path], as_json: bool) -> int:
    """Prints what is wrong; 1 where anything is."""
    problems: list[Problem] = []
    sizes: list[_Size] = []
    for root in roots:
        library = opened(root)
        problems += [one._replace(path=str(root / one.path)) for one in linted(library)]
        for name in library.names:
            size = len(library.source(name))
            sizes.append(_Size(name, str(root / library.path(name)), size, tokens(size)))
    if as_json:
        found = {"problems": [one._asdict() for one in problems], "prompts": [one._asdict() for one in sizes]}
        say(json.dumps(found, indent=2))
    else:
        for problem in problems:
            say(str(problem))
        total = sum(one.bytes for one in sizes)
        estimate = f"{total:,} bytes, about {tokens(total):,} tokens (an estimate: bytes / 4)"
        say(f"{counted(len(sizes), 'prompt')}, {estimate}: {counted(len(problems), 'finding')}")
    return 1 if problems else 0
