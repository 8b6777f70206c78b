"""The position of a process among several workers, set by its parent: its number, and the shared descriptors."""

import os
import signal
import socket
import sys
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from .replication import ReplicaOptions

if TYPE_CHECKING:
    from ..telemetry.siblings import Siblings

VARIABLE = "MCP_WORKER"
"""The environment variable with the number and the descriptors, which a parent sets for its workers."""


class Worker(NamedTuple):
    """This process, as one of several."""

    siblings: "Siblings"
    listener: socket.socket
    """The socket on which all of them accept connections."""


def encode_worker(number: int, listener: int, channel: int) -> str:
    """Return the value of the variable, for the worker of that number, which inherits these two descriptors."""
    return f"{number}:{listener}:{channel}"


def has_workers(options: ReplicaOptions) -> bool:
    """Return True if this process is to be the parent of several."""
    return options.workers > 1 and this_worker() is None


@cache
def this_worker() -> Worker | None:
    """Return this process as one of several; None if it is the only one, or the parent of the others."""
    # Removed, with the descriptors, since they are not for processes that a server starts.
    description = os.environ.pop(VARIABLE, None)
    if description is None:
        return None
    if sys.platform == "win32":
        raise NotImplementedError("workers are not available on Windows")
    from ..telemetry.siblings import Siblings

    # The parent handles a signal to all processes of the program. Ignoring it here would be inherited by children.
    signal.signal(signal.SIGHUP, lambda _number, _frame: None)
    number, *descriptors = map(int, description.split(":"))
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    listener, channel = (socket.socket(fileno=descriptor) for descriptor in descriptors)
    return Worker(Siblings(number, channel), listener)
