"""`python -m servers.sqlite DATABASE...`, and the console script `mcp-bundle-sqlite`."""

import sys

from shared.cli import run

from .server import app


def main() -> None:
    """Runs the server; exits with its code."""
    sys.exit(run(app))


if __name__ == "__main__":
    main()
