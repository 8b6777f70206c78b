"""Starts a server quickly and small: what its `__main__` does before anything else of ours is loaded.

A host waits for every server it starts, and keeps all of them, also those that nobody calls. So the garbage collector
is off until `run` sets it up, and some modules that others import without needing them yet have a stand-in. This
module itself imports the standard library only.
"""

import gc
import sys
from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import Any, NoReturn

_making_way = Lock()


def start(package: str, *, epilog: str = "") -> NoReturn:
    """Runs the `app` of the module `server` in `package`, such as `servers.filesystem`, and exits with its code.
    `epilog` ends its help. Raises ModuleNotFoundError where a library is missing without which it can't be loaded."""
    # What is loaded stays, so to look through it for garbage is for nothing, and 3 % of the instructions of a start.
    gc.disable()
    put_off()
    from shared.program.run import run

    sys.exit(run(import_module(f"{package}.server").app, epilog=epilog))


def put_off() -> None:
    """Puts off modules that a server on stdio may never need; what is loaded already stays. Ends the program where
    `shared` is not ours.

    For its first validator pydantic seeks plugins in the metadata of every installed package. That is 7 % of the
    instructions of a start, and 2.3 MiB, since it loads `importlib.metadata` with `email` and `zipfile`; and a plugin
    that another program needs would stand in the way of every message. PYDANTIC_DISABLE_PLUGINS ends the search but
    not the loading.

    OpenSSL takes 4 MiB, whoever loads it, and 4 %. asyncio and anyio do for encrypted connections, of which a server
    on stdio has none; `hashlib`, which pydantic loads for its secrets, has it for some kinds of hash.
    """
    _refuse_foreign()
    _stand_in("pydantic.plugin._loader", get_plugins=tuple)
    for name in ("asyncio.sslproto", "hashlib", "hmac", "secrets"):
        _stand_in(name)
    ssl = _stand_in("ssl", SSLContext=Any)
    import_module("anyio.streams.tls")  # names that class as a type, which is all it wants of it
    del vars(ssl)["SSLContext"]
    vars(import_module("asyncio"))["sslproto"] = sys.modules["asyncio.sslproto"]  # as importing it would have done


def _refuse_foreign() -> None:
    """Ends the program with one line on stderr where Python finds another `shared` before ours. In a wheel none of
    our packages has that name."""
    spec = PathFinder.find_spec("shared") if __package__ == "servers" else None
    place = spec and next(iter(spec.submodule_search_locations or ()), spec.origin)
    ours = Path(__file__).resolve().parents[1] / "shared"
    if place and not ours.samefile(place):
        reason = f"Python finds {place} before {ours}, and both are called `shared`"
        fix = "start it in another directory, and without that one in PYTHONPATH, or install the bundle as a wheel"
        sys.exit(f"{sys.argv[0]}: {reason}: {fix}")


def _stand_in(name: str, **known: Any) -> ModuleType:
    """A module that takes the name of another, and has what is `known` of it; it loads the real one as soon as
    anybody wants something else. Where that one is loaded already, it stays."""

    def ask(wanted: str) -> Any:
        if wanted.startswith("__"):
            raise AttributeError(wanted)
        with _making_way:
            if sys.modules.get(name) is module:
                del sys.modules[name]
        real = import_module(name)
        # Whoever holds the stand-in asks no more.
        vars(module).update(vars(real))
        return getattr(real, wanted)

    module = ModuleType(name)
    vars(module).update(known, __getattr__=ask)
    sys.modules.setdefault(name, module)
    return module
