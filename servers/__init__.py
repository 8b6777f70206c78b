"""The ready-made servers; each is a program of its own, started with `python -m servers.<name>`.

A host waits for every server it starts, and keeps all of them, also those that nobody calls. So some modules that
others import, without needing them yet, have a stand-in here: it takes the name, and loads the real one as soon as
anybody wants something of it. Where the real one is loaded already, it stays.
"""

import sys
from importlib import import_module
from threading import Lock
from types import ModuleType
from typing import Any

_making_way = Lock()


def _stand_in(name: str, **known: Any) -> ModuleType:
    """A module that has what is `known` of the one of that name; all else is asked of the real one."""

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


# For its first validator pydantic seeks plugins in the metadata of every installed package. That is a twentieth of
# the time to start, and 1.5 MiB, since it loads `importlib.metadata` with `email` and `zipfile`; and a plugin that
# another program needs would stand in the way of every message. PYDANTIC_DISABLE_PLUGINS ends the search but not the
# loading.
_stand_in("pydantic.plugin._loader", get_plugins=tuple)

# OpenSSL takes 5 MiB, and a twentieth of the time to start. asyncio and anyio load it for encrypted connections, of
# which a server on stdio has none; `hashlib`, which pydantic loads for its secrets, has it for some kinds of hash.
for _name in ("asyncio.sslproto", "hashlib", "hmac", "secrets"):
    _stand_in(_name)
_ssl = _stand_in("ssl", SSLContext=Any)
import_module("anyio.streams.tls")  # names that class as a type, which is all it wants of it
del vars(_ssl)["SSLContext"]
vars(import_module("asyncio"))["sslproto"] = sys.modules["asyncio.sslproto"]  # as importing it would have done
