"""What a process is told by the one that has started it as one of several: its number, and what they share."""

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
"""The environment variable that tells it. It is no option."""


class Worker(NamedTuple):
    """This process, as one of several."""

    siblings: "Siblings"
    listener: socket.socket
    """The socket that all of them accept connections on."""


def described(number: int, listener: int, channel: int) -> str:
    """The value of the variable, for the worker of that number, which inherits these two descriptors."""
    return f"{number}:{listener}:{channel}"


def has_workers(options: ReplicaOptions) -> bool:
    """Whether this process is to be the parent of several."""
    return options.workers > 1 and this_worker() is None


@cache
def this_worker() -> Worker | None:
    """This process as one of several; None where it is the only one, or the parent of the others."""
    # Taken away, with the descriptors: none of it is for the processes that a server starts.
    said = os.environ.pop(VARIABLE, None)
    if said is None:
        return None
    if sys.platform == "win32":
        raise NotImplementedError("there are no workers on Windows")
    from ..telemetry.siblings import Siblings

    # Who signals all processes of the program means the parent. To ignore it would be inherited.
    signal.signal(signal.SIGHUP, lambda _number, _frame: None)
    number, *descriptors = map(int, said.split(":"))
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    listener, channel = (socket.socket(fileno=descriptor) for descriptor in descriptors)
    return Worker(Siblings(number, channel), listener)
