"""Starts and kills processes for work that is untrusted or can't be interrupted. The caller exchanges messages with
the process, and decides when it ends.
"""

import os
import subprocess
import sys
from contextlib import suppress

import anyio
from anyio.abc import Process

# The environment variables that Python needs. A worker gets no others, since they may contain keys and tokens.
_ENVIRONMENT = {"PYTHONHOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "__PYVENV_LAUNCHER__"}


async def start_worker(program: str, *arguments: str) -> Process:
    """Start a process of this Python that runs the source code `program`, with pipes for its input and output. Its
    command line consists of the `arguments` and the search path of modules. Raises OSError."""
    # With -P and -s, modules in the current directory or in the user's packages can't replace those of the bundle.
    command = [sys.executable, "-P", "-s", "-W", "ignore", "-c", program, *arguments, *filter(None, sys.path)]
    environment = {name: value for name, value in os.environ.items() if name.upper() in _ENVIRONMENT}
    # If the call were cancelled while the process starts, nobody would end the process.
    with anyio.CancelScope(shield=True):
        # The process gets a session of its own, so that Ctrl+C does not reach it. The server ends it.
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
        # For asyncio, a process has only ended when its output has ended, and it only reads output that is consumed.
        with suppress(anyio.BrokenResourceError):
            async for _ in process.stdout:
                pass
        await process.aclose()
