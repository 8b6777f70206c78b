"""Starts and kills a process for work that is untrusted or can't be interrupted.

The server decides on the messages to it, and on its lifetime.
"""

import os
import subprocess
import sys
from contextlib import suppress

import anyio
from anyio.abc import Process

# Variables that Python needs. A worker must not get any others, which may be keys and tokens, least of all a worker
# that reads malicious pages.
_ENVIRONMENT = {"PYTHONHOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "__PYVENV_LAUNCHER__"}


async def start_worker(program: str, *arguments: str) -> Process:
    """Start a process of this Python that runs the source `program`, with pipes to its input and from its output.

    Its command line has the `arguments`, and then the search path of modules. Raises OSError.
    """
    # -P and -s: neither the current directory nor the user's packages precede the bundle's modules.
    command = [sys.executable, "-P", "-s", "-W", "ignore", "-c", program, *arguments, *filter(None, sys.path)]
    environment = {name: value for name, value in os.environ.items() if name.upper() in _ENVIRONMENT}
    # A process started by a cancelled call would be leaked.
    with anyio.CancelScope(shield=True):
        # In its own session, Ctrl+C does not reach it; the server ends it.
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
        # asyncio considers a process ended only when its output ends, and stops reading output that is not consumed.
        with suppress(anyio.BrokenResourceError):
            async for _ in process.stdout:
                pass
        await process.aclose()
