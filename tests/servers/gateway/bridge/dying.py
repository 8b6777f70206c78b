"""A server that dies when it is told to: `python -m tests.checks.gateway.dying`."""

import os

from shared import Implementation, Server
from shared.program.run import run

app = Server[None](Implementation(name="dying", version="1"))


@app.tool()
async def die() -> str:
    """End at once."""
    os._exit(3)


@app.tool()
async def live() -> str:
    """Tell which process this is."""
    return str(os.getpid())


if __name__ == "__main__":
    run(app)
