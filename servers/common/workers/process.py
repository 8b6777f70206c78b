"""Starts and ends a process for work that can't be trusted or interrupted.

The messages to it, and its lifetime, are up to the server.
"""

import os
import subprocess
import sys
from contextlib import suppress

import anyio
from anyio.abc import Process

# Variables that Python needs; a worker must not get the rest, keys and tokens perhaps, least of all
# one that reads hostile pages.
_ENVIRONMENT = {"PYTHONHOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "__PYVENV_LAUNCHER__"}


async def start_worker(program: str, *arguments: str) -> Process:
    """Start a process of this Python that runs the source `program`, with pipes to its input and from its output.

    Its command line has the `arguments`, and then the search path of modules. Raises OSError.
    """
    # -P and -s: neither the current directory nor packages of the user's come before our own modules.
    command = [sys.executable, "-P", "-s", "-W", "ignore", "-c", program, *arguments, *filter(None, sys.path)]
    environment = {name: value for name, value in os.environ.items() if name.upper() in _ENVIRONMENT}
    # A process that was started by a cancelled call would be leaked.
    with anyio.CancelScope(shield=True):
        # In a session of its own Ctrl+C does not reach it: the server ends it.
        process: Process = await anyio.open_process(
            command, stderr=subprocess.DEVNULL, env=environment, start_new_session=True
        )
    return process


async def kill_worker(process: Process) -> None:
    """Kill the process, and wait until it has ended."""
    with anyio.CancelScope(shield=True):
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
        assert process.stdout is not None
        # asyncio regards a process as ended when its output is, which it stops reading if it is not consumed.
        with suppress(anyio.BrokenResourceError):
            async for _ in process.stdout:
                pass
        await process.aclose()
