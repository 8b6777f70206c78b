"""Lazy modules, which are imported as usual, but executed only when one of their attributes is first used.

The import system finds, creates and registers a lazy module under its own name; only its code is executed later. So
the module is the same object before and after its execution. `importlib.util.LazyLoader` would execute a module when
it is imported for the second time, because that import reads an attribute of the module in Python 3.11.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from threading import RLock
from types import ModuleType
from typing import Any, NamedTuple

WITH_OPENSSL = ("asyncio.sslproto", "hashlib", "hmac", "secrets", "ssl")
"""The modules that load OpenSSL. OpenSSL takes 4 % of the time to start, and 5.1 MiB: 1.6 MiB of this is private, the
rest are pages of its libraries, which processes share. asyncio and anyio load it for encrypted connections, which a
server on stdio does not have, and `hashlib`, which many modules import, needs it for some hash algorithms. Each of
these modules alone takes 3.6 to 4.3 MiB."""


class LazyFinder(NamedTuple):
    """A finder for `sys.meta_path` that makes modules lazy, except those that are already imported."""

    names: tuple[str, ...]
    """The full names of lazy modules that are not packages."""
    packages: tuple[str, ...] = ()
    """The names of packages whose direct submodules are lazy."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a lazy module. None if the module should not be lazy, has no source file, or is being
        reloaded."""
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
        """Execute a lazy module, unless it was executed before, or this thread is executing it. Other threads wait
        until it is done. An exception of the module's code is raised here, and the next call executes it again."""
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
    """A module that has not been executed yet."""

    def __getattr__(self, name: str) -> Any:
        # `from module import name` looks for `__path__`, which only packages have. This alone does not execute the
        # module.
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
def preset_attribute(name: str, attribute: str, value: object) -> Iterator[None]:
    """Give the module `name` an attribute during the block if it has not been executed, so that `from name import
    attribute` does not execute it."""
    module = import_module(name)
    is_lazy = isinstance(module, _LazyModule)
    if is_lazy:
        setattr(module, attribute, value)
    yield
    if is_lazy and vars(module)[attribute] is value:
        delattr(module, attribute)
