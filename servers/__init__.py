"""The ready-made servers; each is a program of its own, started with `python -m servers.<name>`."""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

# For its first validator pydantic seeks plugins in the metadata of every installed package. That is a twentieth of
# the time to start, and 1.5 MiB, since it loads `importlib.metadata` with `email` and `zipfile`; and a plugin that
# another program needs would stand in the way of every message. PYDANTIC_DISABLE_PLUGINS ends the search but not the
# loading, so this stands in for the module that searches. A pydantic that wants more of it gets the real one.
_SEARCH = "pydantic.plugin._loader"


def _real(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    del sys.modules[_SEARCH]
    return getattr(import_module(_SEARCH), name)


_no_plugins = ModuleType(_SEARCH)
vars(_no_plugins).update(get_plugins=tuple, __getattr__=_real)
sys.modules.setdefault(_SEARCH, _no_plugins)
