"""The protocol package: what every server of the bundle stands on, and what a server author imports.

It knows no server. Layers, each importing only those before it: errors and texts, protocol, contracts and
auth, server and stores, extensions and telemetry, transports, and last client, program and testing.

The names are those of `names.py`, which is loaded with the first of them: who needs `text` alone, as a process that
reads a page or runs a statement does, would else load all of the protocol, and nothing could be done before that.
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
    found = globals()[name] = getattr(names, name)
    return found
