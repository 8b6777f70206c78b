"""`python -m servers demo`: the servers at work."""

from collections.abc import Sequence

from ..demo import run_demo
from .arguments import CommandParser

__all__ = ["main"]


def main(argv: Sequence[str]) -> int:
    """Runs the demo; the exit code."""
    CommandParser("demo", "Start the servers as a desktop host would, and do real work through them.").parse_args(
        argv
    )
    return run_demo()
