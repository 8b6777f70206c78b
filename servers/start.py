"""Starts a server quickly and with little memory: `__main__` of each server calls `start` before it imports anything
else of the bundle.

A host waits for every server that it starts, and keeps all of them running, even those that are never called. So the
garbage collector is off until `run` configures it, modules that are imported early but used late are loaded when they
are used, and classes of libraries are defined in a cheaper way. This module itself imports only the standard library.
"""

import gc
import os
import sys
from contextlib import ExitStack
from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, NoReturn

_UNUSED = (
    "importlib.metadata",  # with `email` and `zipfile` it takes 2.4 MiB, 2.0 MiB of them private
    "json",  # pydantic reads and writes the messages
    "platform",  # it compiles eleven regular expressions
    "zoneinfo",  # it loads the configuration with which Python was built
    "locale",  # 0.2 MiB, of which `subprocess` uses one function
    "anyio.from_thread",
    "asyncio.staggered",
    "asyncio.trsock",
    f"{__package__}.common.images",  # it loads zlib
    f"{__package__}.filesystem.features.consent",
)
"""Modules that are imported early, but used late or never. (In a wheel, this package has another name.)"""
_CALLED = (
    *(f"{__package__}.filesystem.{part}" for part in ("edit", "history", "search", "undo")),
    f"{__package__}.common.workers",
)
"""Packages whose modules only calls use. Importing them would take 6 % of the time of a start, and 1.1 MiB."""

_LIBRARIES = ("uuid", "anyio.streams.tls", "anyio.streams.memory", "anyio.streams.stapled")
"""Modules that pydantic imports for its first model, and anyio when it starts an event loop."""


def start(package: str, *, epilog: str = "") -> NoReturn:
    """Run the server of `package`, such as `servers.filesystem`: the `app` in its module `server`. Exit with its exit
    code. `epilog` is the end of its `--help`. Raises ModuleNotFoundError if a needed library is missing."""
    # Looking for garbage is useless during imports, since modules are never freed. It would take 3 % of the
    # instructions of a start.
    gc.disable()
    make_modules_lazy()
    from shared.lazy_classes import lazy_dataclasses
    from shared.program.run import run

    with lazy_dataclasses():
        import_module("anyio._backends._asyncio")  # `anyio.run` imports it
    app = import_module(f"{package}.server").app
    # The names of all files in the folders of imported modules take 0.5 MB, and later imports need few of them.
    sys.path_importer_cache.clear()
    sys.exit(run(app, epilog=epilog))


def make_modules_lazy() -> None:
    """Make the modules lazy that a server on stdio may never need, unless they are already imported. Exits the
    program if Python would import another package as `shared`."""
    refuse_foreign()
    from shared.lazy_classes import lazy_dataclasses, plain_typed_dicts
    from shared.lazy_modules import WITH_OPENSSL, LazyFinder, preset_attribute

    finder = LazyFinder((*WITH_OPENSSL, *_UNUSED), _CALLED)
    if finder in sys.meta_path:
        return
    sys.meta_path.insert(0, finder)
    with plain_typed_dicts(), lazy_dataclasses(), ExitStack() as stack:
        for name, attribute, value in (
            ("platform", "system", _system),  # all that `uuid` uses of it
            # No model of the bundle has time zones.
            ("zoneinfo", "ZoneInfo", type("ZoneInfo", (), {})),
            ("zoneinfo", "ZoneInfoNotFoundError", KeyError),
            # anyio 4.16 imports this class by its name, and uses it only as a type annotation.
            ("ssl", "SSLContext", Any),
            # For its first model, pydantic looks for plugins in the metadata of all installed packages. That takes
            # long, and a plugin, which another program may need, would slow down each message. So it finds none, and
            # remembers that.
            ("importlib.metadata", "entry_points", lambda group: ()),
        ):
            stack.enter_context(preset_attribute(name, attribute, value))
        for module in _LIBRARIES:
            import_module(module)
        from pydantic import create_model

        create_model("First")


def _system() -> str:
    """Return what `platform.system()` returns."""
    return os.uname().sysname if hasattr(os, "uname") else "Windows"


def refuse_foreign() -> None:
    """Exit with one line on stderr if Python finds another package called `shared` before the bundle's. In a wheel,
    no package of the bundle has that name, so nothing is checked."""
    spec = PathFinder.find_spec("shared") if __package__ == "servers" else None
    other_path = spec and next(iter(spec.submodule_search_locations or ()), spec.origin)
    own_path = Path(__file__).resolve().parents[1] / "shared"
    if other_path and not own_path.samefile(other_path):
        reason = f"Python finds {other_path} before {own_path}, and both are named `shared`"
        fix = "start it in another directory, without that one in PYTHONPATH, or install the bundle as a wheel"
        sys.exit(f"{sys.argv[0]}: {reason}: {fix}")
