"""The signals that end a program in order."""

import asyncio
import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["ending_signals"]

log = logging.getLogger("shared.program")


@contextmanager
def ending_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Calls `stop` at SIGTERM or SIGINT; a second signal ends the program at once, even if the loop is held up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def end(number: int, _frame: object) -> None:
        for one in before:
            signal.signal(one, signal.SIG_DFL)
            before[one] = signal.SIG_DFL
        loop.call_soon_threadsafe(_end, number, stop)

    for number in before:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, stop: Callable[[], None]) -> None:
    log.info("%s: ending", signal.Signals(number).name)
    stop()
