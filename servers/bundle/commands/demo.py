"""`python -m servers demo`: the servers at work."""

from collections.abc import Sequence

from ..demo.run import run_demo
from .arguments import CommandParser

__all__ = ["main"]


def main(argv: Sequence[str]) -> int:
    """Runs the demo; the exit code."""
    parser = CommandParser("demo", "Start the servers as a desktop host would, and do real work through them.")
    parser.add_argument("--verbose", action="store_true", help="show every call, and all that came of it")
    return run_demo(parser.parse_args(argv).verbose)
