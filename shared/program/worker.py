"""What a parent process passes to each of its workers: the worker's number, and descriptors that it inherits."""

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
"""The environment variable with which a parent passes the number and the descriptors to a worker."""


class Worker(NamedTuple):
    """This process, which is one of several workers."""

    siblings: "Siblings"
    listener: socket.socket
    """The socket on which all workers accept connections."""


def encode_worker(number: int, listener: int, channel: int) -> str:
    """Return the value of the variable for the worker with this number, which inherits the descriptors of the
    listening socket and of the channel to its parent."""
    return f"{number}:{listener}:{channel}"


def has_workers(options: ReplicaOptions) -> bool:
    """Return True if this process is to be the parent of several workers."""
    return options.workers > 1 and this_worker() is None


@cache
def this_worker() -> Worker | None:
    """Return this process as a worker; None if it is the program's only process, or the parent of workers."""
    # Processes that a server starts must get neither the variable nor the descriptors.
    description = os.environ.pop(VARIABLE, None)
    if description is None:
        return None
    if sys.platform == "win32":
        raise NotImplementedError("workers are not available on Windows")
    from ..telemetry.siblings import Siblings

    # The parent handles SIGHUP for the whole program. A handler that does nothing is set, because children would
    # inherit SIG_IGN.
    signal.signal(signal.SIGHUP, lambda _number, _frame: None)
    number, *descriptors = map(int, description.split(":"))
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    listener, channel = (socket.socket(fileno=descriptor) for descriptor in descriptors)
    return Worker(Siblings(number, channel), listener)
