"""A server that tells of its own process, and ends it: `python -m tests.servers.bundle.own_process`."""

import os
import sys

from shared import Implementation, Server
from shared.program.run import run

COMMAND = [sys.executable, "-m", "tests.servers.bundle.own_process"]
"""To be run in the project's folder."""

app = Server[None](Implementation(name="own-process", version="1", description="Tells of its own process."))


@app.tool(read_only=True)
async def pid() -> str:
    """Tell the process id."""
    return str(os.getpid())


@app.tool(read_only=True)
async def variable(name: str) -> str:
    """Tell a variable of the environment."""
    return os.environ.get(name, "not set")


@app.tool()
async def end() -> str:
    """End at once."""
    os._exit(3)


if __name__ == "__main__":
    sys.stderr.write("it begins\n")
    raise SystemExit(run(app))
