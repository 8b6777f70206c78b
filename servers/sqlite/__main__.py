"""`python -m servers.sqlite DATABASE...`, and the console script `mcp-bundle-sqlite`."""

import gc
import sys

# Until `run` sets it up: what is loaded stays, so to look through it for garbage is a tenth of the start for nothing.
gc.disable()

from shared.kit.extras import needs_extra  # noqa: E402
from shared.program.options import called  # noqa: E402
from shared.program.run import run  # noqa: E402

try:
    from .server import app
except ModuleNotFoundError as error:
    # Its connections are made of those of aiosqlite, so it can't be loaded without.
    if error.name != "aiosqlite":
        raise
    sys.stderr.write(f"{called()}: {needs_extra('sqlite')}\n")
    sys.exit(2)


def main() -> None:
    """Runs the server; exits with its code."""
    sys.exit(run(app))


if __name__ == "__main__":
    main()
