"""The protocol package, on which every server of the bundle is built, with the names that a server author imports.

It imports nothing from the servers. Its layers are, from the lowest: errors and texts; protocol; contracts and auth;
server and stores; extensions and telemetry; transports; client, program and testing. It imports only lower ones.

The names come from `names.py`, which is loaded when the first of them is used. So a process that needs only
`shared.text`, such as a worker that reads a web page or runs an SQL statement, does not load the whole protocol.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .names import *  # noqa: F403
    from .names import __version__ as __version__


def __dir__() -> list[str]:
    return sorted({*globals(), *import_module(".names", __name__).__all__})


def __getattr__(name: str) -> Any:
    if name.startswith("__") and name not in ("__all__", "__version__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    names = import_module(".names", __name__)
    if name not in ("__all__", *names.__all__):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(names, name)
    return value
