"""A watchdog that reports which line of an author's code blocks the event loop, which delays all clients."""

import asyncio
import logging
import sys
import traceback
from pathlib import Path
from threading import Event, Thread, get_ident

from shared import version

log = logging.getLogger("servers.dev")

BLOCKED_SECONDS = 0.1
_PAUSE_SECONDS = 0.05
_BUNDLE_FOLDERS = (Path(__file__).resolve().parents[1], Path(version.__file__).resolve().parent)
_LIBRARIES = (sys.prefix, sys.base_prefix, *_BUNDLE_FOLDERS)


def watch_loop(folder: Path) -> None:
    """Start a thread that logs, with the stack, each time that code in `folder`, except libraries, blocks the running
    event loop for over 100 ms. The thread ends with the loop."""
    loop, thread = asyncio.get_running_loop(), get_ident()

    def watch() -> None:
        pause = Event()
        while not pause.wait(_PAUSE_SECONDS):
            has_turned = Event()
            try:
                loop.call_soon_threadsafe(has_turned.set)
            except RuntimeError:  # the loop is closed
                return
            if not has_turned.wait(BLOCKED_SECONDS):
                _report(thread, folder)
                has_turned.wait()

    Thread(target=watch, daemon=True).start()


def is_authors(file: Path, folder: Path) -> bool:
    """Return True if `file` is in `folder`, and is neither part of the bundle nor installed. A project's folder often
    contains a virtual environment, whose files don't count."""
    return file.is_relative_to(folder) and not any(file.is_relative_to(library) for library in _LIBRARIES)


def _report(thread: int, folder: Path) -> None:
    """Log the stack of the thread from the first line of the author's code on; nothing if it has none."""
    frame = sys._current_frames().get(thread)  # noqa: SLF001 - documented, and there is no other way
    stack = traceback.extract_stack(frame) if frame is not None else []
    author_lines = [index for index, line in enumerate(stack) if is_authors(Path(line.filename), folder)]
    if not author_lines:  # the machine is slow, or the loop waits for events
        return
    reason = "a `def` tool runs in a thread, and `await anyio.to_thread.run_sync(...)` runs a function in one"
    shown = "".join(traceback.format_list(stack[author_lines[0] :]))
    log.warning(
        "the event loop has been blocked for over 100 ms, and every client is waiting; %s:\n%s", reason, shown
    )
