"""A third-party server for a separate process: reports its environment, and exits on request."""

import os
import sys
from hashlib import sha256

from shared import Implementation, Server
from shared.program.run import run

COMMAND = [sys.executable, "-m", "tests.servers.bundle.other_server"]
"""To be run in the project's folder."""

app = Server[None](Implementation(name="other", version="3", title="Other <server>"))


@app.tool()
async def digest(variable: str) -> str:
    """The SHA-256 of a variable of this process, or of "not set"."""
    return sha256(os.environ.get(variable, "not set").encode()).hexdigest()


@app.tool()
async def pid() -> str:
    """The id of this process."""
    return str(os.getpid())


@app.tool()
async def leave() -> str:
    """End at once."""
    os._exit(3)


if __name__ == "__main__":
    print("other: a word on stderr", file=sys.stderr, flush=True)
    sys.exit(run(app))
