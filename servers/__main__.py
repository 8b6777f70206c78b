"""`python -m servers`: what concerns the bundle as a whole. Each server is a program of its own."""

import argparse
import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one subcommand; its exit code."""
    parser = argparse.ArgumentParser(prog="python -m servers", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("list", help="list the servers of the bundle")
    commands.add_parser("demo", help="start the servers as a desktop host would, and do real work through them")
    command = parser.parse_args(argv).command
    if command == "demo":
        from .demo import run_demo

        return run_demo()
    from .catalog import load_catalog

    for entry in load_catalog().servers:
        print(f"{entry.name:12} python -m {entry.module:20} {entry.summary}")  # noqa: T201 - it is the output
    return 0


if __name__ == "__main__":
    sys.exit(main())
