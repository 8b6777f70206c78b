"""A process that does a part of a server's work, because it may not be trusted or can't be interrupted: its start and
its end. What is said to it, and for how long it is kept, is up to the server.
"""

import os
import subprocess
import sys
from contextlib import suppress

import anyio
from anyio.abc import Process

# What Python needs of the environment; the rest, keys and tokens perhaps, is no business of a worker, least of all of
# one that reads hostile pages.
_ENVIRONMENT = {"PYTHONHOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "__PYVENV_LAUNCHER__"}


async def start_worker(program: str, *arguments: str) -> Process:
    """A process of this Python that runs the source `program`, with pipes to its input and from its output. Its
    command line has the `arguments`, and then where modules are found here. Raises OSError."""
    # -P and -s: neither the current directory nor packages of the user's come before our own modules.
    command = [sys.executable, "-P", "-s", "-W", "ignore", "-c", program, *arguments, *filter(None, sys.path)]
    environment = {name: value for name, value in os.environ.items() if name.upper() in _ENVIRONMENT}
    # A process that was started while nobody waits for it any more would be known to nobody.
    with anyio.CancelScope(shield=True):
        # In a session of its own Ctrl+C does not reach it: the server ends it.
        process: Process = await anyio.open_process(
            command, stderr=subprocess.DEVNULL, env=environment, start_new_session=True
        )
    return process


async def kill_worker(process: Process) -> None:
    """Kills the process, and waits until nothing is left of it."""
    with anyio.CancelScope(shield=True):
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
        assert process.stdout is not None
        # asyncio calls a process ended when its output is, which it stops reading where nobody takes it.
        with suppress(anyio.BrokenResourceError):
            async for _ in process.stdout:
                pass
        await process.aclose()
