"""Fast start of a server with little memory: the work of its `__main__` before it loads other modules of the bundle.

A host waits for every server that it starts, and keeps all of them running, even those that are never called. So the
garbage collector is off until `run` configures it, and some modules that others import before they need them are
replaced by lazy modules. This module itself imports only the standard library.
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
    """Run the `app` of the module `server` in `package`, such as `servers.filesystem`, and exit with its code.
    `epilog` is the last part of its help. Raises ModuleNotFoundError if a library that it needs is missing."""
    # Imported modules are never freed, so scanning them for garbage is wasted work: 3 % of the instructions at
    # startup.
    gc.disable()
    put_off()
    from shared.program.run import run

    sys.exit(run(import_module(f"{package}.server").app, epilog=epilog))


def put_off() -> None:
    """Make modules lazy that a server on stdio may never need, except those that are already imported. Exits the
    program if the `shared` on the path does not belong to the bundle."""
    _refuse_foreign()
    # For its first validator pydantic looks for plugins in the metadata of every installed package. That takes 7 % of
    # the instructions of a start and 2.4 MiB of resident memory, 2.0 MiB of them private, since it loads
    # `importlib.metadata` with `email` and `zipfile`; and a plugin that another program needs would slow down every
    # message. PYDANTIC_DISABLE_PLUGINS stops the search, but not the loading.
    _stand_in("pydantic.plugin._loader", get_plugins=tuple)
    # OpenSSL takes 4 % of a start and 5.1 MiB, 1.6 MiB of them private: the rest are pages of its libraries, which
    # processes share. asyncio and anyio load it for encrypted connections, which a server on stdio does not have;
    # `hashlib`, which pydantic loads for its secrets, needs it for some hash algorithms. Each of `ssl`, `hashlib`,
    # `hmac` and `secrets` loads it: any one of them alone takes 3.6 to 4.3 MiB.
    for name in ("asyncio.sslproto", "hashlib", "hmac", "secrets"):
        _stand_in(name)
    ssl = _stand_in("ssl", SSLContext=Any)
    import_module("anyio.streams.tls")  # it uses that class only as a type annotation
    del vars(ssl)["SSLContext"]
    vars(import_module("asyncio"))["sslproto"] = sys.modules["asyncio.sslproto"]  # as an import would do


def _refuse_foreign() -> None:
    """Exit with one line on stderr if Python finds another `shared` before the bundle's. In a wheel, no package of
    the bundle has that name."""
    spec = PathFinder.find_spec("shared") if __package__ == "servers" else None
    place = spec and next(iter(spec.submodule_search_locations or ()), spec.origin)
    ours = Path(__file__).resolve().parents[1] / "shared"
    if place and not ours.samefile(place):
        reason = f"Python finds {place} before {ours}, and both are named `shared`"
        fix = "start it in another directory, without that one in PYTHONPATH, or install the bundle as a wheel"
        sys.exit(f"{sys.argv[0]}: {reason}: {fix}")


def _stand_in(name: str, **attributes: Any) -> ModuleType:
    """Register a lazy module under `name` that has these `attributes`, and return it. It loads the real module at the
    first access to any other attribute. A module that is already imported stays."""

    def load_attribute(attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        with _making_way:
            if sys.modules.get(name) is module:
                del sys.modules[name]
        real = import_module(name)
        # Code that has the lazy module does not call this again.
        vars(module).update(vars(real))
        return getattr(real, attribute)

    module = ModuleType(name)
    vars(module).update(attributes, __getattr__=load_attribute)
    sys.modules.setdefault(name, module)
    return module
