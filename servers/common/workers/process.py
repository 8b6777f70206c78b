"""Starts and kills a process for work that is untrusted or can't be interrupted. The caller exchanges messages with
the process and decides when it ends.
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
    """Start a process of this Python that runs the source code `program`, with pipes to its input and from its
    output. Its command line has the `arguments`, and then the search path of modules. Raises OSError."""
    # -P and -s: neither the current directory nor the user's packages precede the bundle's modules.
    command = [sys.executable, "-P", "-s", "-W", "ignore", "-c", program, *arguments, *filter(None, sys.path)]
    environment = {name: value for name, value in os.environ.items() if name.upper() in _ENVIRONMENT}
    # If the call were cancelled while the process starts, the process would never be ended.
    with anyio.CancelScope(shield=True):
        # Ctrl+C does not reach a process in a session of its own; the server ends it.
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
        # asyncio waits for the end of a process until its output ends, and reads output only while it is consumed.
        with suppress(anyio.BrokenResourceError):
            async for _ in process.stdout:
                pass
        await process.aclose()
