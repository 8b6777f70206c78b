"""Lazy modules: imported as usual, and executed at the first use of one of their attributes.

The import system finds, creates and registers each of them under its own name; only its code waits. So there is one
object for a module, before and after it is executed. `importlib.util.LazyLoader` would execute a module at the second
`import` of it, since in Python 3.11 that reads an attribute of the module.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from threading import RLock
from types import ModuleType
from typing import Any, NamedTuple

WITH_OPENSSL = ("asyncio.sslproto", "hashlib", "hmac", "secrets", "ssl")
"""The modules that load OpenSSL. It takes 4 % of a start and 5.1 MiB, 1.6 MiB of them private: the rest are pages of
its libraries, which processes share. asyncio and anyio load it for encrypted connections, which a server on stdio
does not have; `hashlib`, which many import, needs it for some hash algorithms. Any one of them alone takes 3.6 to 4.3
MiB."""


class LazyFinder(NamedTuple):
    """A finder for `sys.meta_path` that makes modules lazy, except those that are already imported."""

    names: tuple[str, ...]
    """The names of modules, without packages."""
    packages: tuple[str, ...] = ()
    """The names of packages whose modules are lazy."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a lazy module; None for other modules, those that are not in a source file, and those
        that are reloaded."""
        is_lazy = name in self.names or name.rpartition(".")[0] in self.packages
        spec = PathFinder.find_spec(name, path) if is_lazy and target is None else None
        if spec is None or type(spec.loader) is not SourceFileLoader:
            return None
        spec.loader = _LazyLoader(name, spec.loader.path)
        return spec


class _LazyLoader(SourceFileLoader):
    """The loader of one lazy module."""

    def __init__(self, name: str, path: str) -> None:
        super().__init__(name, path)
        self._lock = RLock()
        self._is_executing = False

    def exec_module(self, module: ModuleType) -> None:
        module.__class__ = _LazyModule

    def execute(self, module: ModuleType) -> None:
        """Execute a lazy module, unless that is done or has begun in this thread. Other threads wait. Raises the
        exceptions of its code, each time."""
        with self._lock:
            is_lazy = type(module) is _LazyModule
            if is_lazy and not self._is_executing:
                self._is_executing = True
                try:
                    super().exec_module(module)
                finally:
                    self._is_executing = False
                module.__class__ = ModuleType


class _LazyModule(ModuleType):
    """A module that is not executed yet."""

    def __getattr__(self, name: str) -> Any:
        # The import system looks for `__path__` in `from module import name`. Only packages have it.
        if name != "__path__":
            self._execute()
        return ModuleType.__getattribute__(self, name)

    def __dir__(self) -> list[str]:
        self._execute()
        return [*ModuleType.__dir__(self)]

    def _execute(self) -> None:
        loader = self.__spec__ and self.__spec__.loader
        if isinstance(loader, _LazyLoader):  # a reload replaces the loader
            loader.execute(self)


@contextmanager
def preset(name: str, attribute: str, value: object) -> Iterator[None]:
    """Give the module `name` an attribute for a while if it is lazy, so that an import of this attribute from it does
    not execute it."""
    module = import_module(name)
    is_lazy = isinstance(module, _LazyModule)
    if is_lazy:
        setattr(module, attribute, value)
    yield
    if is_lazy and vars(module)[attribute] is value:
        delattr(module, attribute)
