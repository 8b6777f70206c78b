"""`python -m servers.prompts lint|render|test|export`: what there is to do with a library besides serving it."""

from collections.abc import Sequence

__all__ = ["HELP", "WORDS", "main"]

HELP = "With lint, render, test or export before a DIR it does that instead of serving: lint --help says more."

WORDS = frozenset(["export", "lint", "render", "test"])
"""What the first argument is then. A folder that is called so is served as ./lint."""


def main(arguments: Sequence[str]) -> int:
    """Does what the arguments say, the first of which is one of the words.

    The exit code: 0 where all is well, 1 where something is found or fails, 2 for arguments that mean nothing.
    """
    from servers.prompts.commands.parser import run  # noqa: PLC0415 (a server needs none of it)

    return run(arguments)
