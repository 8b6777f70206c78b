"""`python -m servers.filesystem DIR...`, and the console script `mcp-bundle-filesystem`."""

import gc
import sys

# Until `run` sets it up: what is loaded stays, so to look through it for garbage is a tenth of the start for nothing.
gc.disable()

from shared.program.run import run  # noqa: E402

from .server import app  # noqa: E402


def main() -> None:
    """Runs the server; exits with its code."""
    sys.exit(run(app))


if __name__ == "__main__":
    main()
