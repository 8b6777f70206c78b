"""The settings of the prompts server."""

from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import BaseModel, Field, field_validator, model_validator

from servers.common.within import resolve_within
from shared.program.messages import missing_extra_message
from shared.program.settings.options import expand_home, option, positional

from .library.libraries import STARTER
from .remote.address import FORM, Package, is_package, parse_address

if TYPE_CHECKING:
    from .remote.cache import Checkout


class Narrowing(BaseModel, defer_build=True):
    """The part of the libraries to which the operator limits a principal."""

    libraries: list[Path] = Field([], description="directories of prompts, within those of the server")
    files: list[Path] = Field([], description="directories whose files are suggested, within those of the server")


class Settings(BaseModel):
    """The libraries, whether prompts may be changed there, and what files may be suggested."""

    narrowing: ClassVar[type[BaseModel]] = Narrowing

    libraries: list[Path] = positional(
        "directories, .zip files or marketplace.json files of prompts; if names clash, the first one wins",
        "DIR",
    )
    starter: bool = Field(False, description="also serve the built-in prompts, which are the default without a DIR")
    allow_write: bool = Field(False, description="offer the tools that save and delete prompts, in the first DIR")
    confirm: bool = Field(False, description="ask the user before saving or deleting a prompt")
    library: list[str] = option([], f"library in a git repository, with lower priority than a DIR: {FORM}", "URL")
    refresh_minutes: float = Field(
        30.0, ge=0, description="minutes between updates of each --library; 0 updates only at startup"
    )
    files: list[Path] = option([], "directory whose files are suggested for arguments of type file", "DIR")

    @field_validator("libraries", "files", mode="before")
    @classmethod
    def _require_names(cls, directories: Any) -> Any:
        # An empty path, as from an unset shell variable, would mean the working directory.
        if isinstance(directories, list) and "" in directories:
            raise ValueError("a directory name is empty")
        return directories

    @field_validator("libraries")
    @classmethod
    def _check_libraries(cls, libraries: list[Path]) -> list[Path]:
        packages = [path for path in map(expand_home, libraries) if is_package(path) and path.is_file()]
        return [path if path in packages else _require_directory(path) for path in map(expand_home, libraries)]

    @field_validator("files")
    @classmethod
    def _check_files(cls, directories: list[Path]) -> list[Path]:
        return [_require_directory(expand_home(directory)) for directory in directories]

    @field_validator("library")
    @classmethod
    def _normalize_addresses(cls, addresses: list[str]) -> list[str]:
        return [str(parse_address(address)) for address in addresses]

    @model_validator(mode="after")
    def _require_writable_folder(self) -> Self:
        if self.allow_write and not self.libraries:
            raise ValueError("--allow-write needs a DIR: the built-in prompts can't be changed")
        if self.allow_write and is_package(self.libraries[0]):
            raise ValueError(f"--allow-write needs a directory as the first DIR, but {self.libraries[0]} is a file")
        return self

    @model_validator(mode="after")
    def _require_extra(self) -> Self:
        # These packages are only imported for the first prompt, which would be too late for this error.
        if any(find_spec(library) is None for library in ("jinja2", "yaml", "watchfiles")):
            raise ValueError(missing_extra_message("prompts"))
        return self

    @cached_property
    def roots(self) -> list[Path]:
        """The directories of all libraries, in order of precedence."""
        roots: list[Path] = []
        remaining = iter(self.checkouts)
        for path in self.libraries:
            if path not in self._packages:
                roots.append(path)
                continue
            package = Package(path)
            # Plugins in the folder of a marketplace file are served from the folder, and the others from the cache.
            roots += [package.root] if package.is_marketplace else []
            roots.append(next(remaining).root)
        roots += [checkout.root for checkout in remaining]
        return [*roots, STARTER] if self.starter or not roots else roots

    @cached_property
    def checkouts(self) -> "list[Checkout]":
        """The libraries in packages, then those in git repositories."""
        if not self.library and not self._packages:
            return []
        from .remote.cache import Checkout

        packages = [Checkout(Package(path)) for path in self._packages]
        return [*packages, *(Checkout(parse_address(address)) for address in self.library)]

    @cached_property
    def _packages(self) -> list[Path]:
        return [path for path in self.libraries if is_package(path)]

    def narrow(self, narrowing: Narrowing) -> Self:
        """Return a copy of these settings for one principal, limited to the libraries and files of `narrowing`.

        The principal may save prompts if the first library is within the first DIR. Raises ValueError for a directory
        that is not within those of the server.
        """
        if not narrowing.libraries:
            raise ValueError("libraries: name at least one")
        libraries = [resolve_within(directory, self.roots) for directory in narrowing.libraries]
        files = [resolve_within(directory, self.files) for directory in narrowing.files]
        writable_root = self.libraries[0].resolve() if self.allow_write else None
        allow_write = writable_root is not None and libraries[0].is_relative_to(writable_root)
        narrowed = self.model_copy(
            update={
                "libraries": libraries,
                "library": [],
                "files": files,
                "starter": False,
                "allow_write": allow_write,
            }
        )
        for cached in ("roots", "checkouts", "_packages"):
            narrowed.__dict__.pop(cached, None)
        return narrowed


def _require_directory(path: Path) -> Path:
    if not path.is_dir():
        raise ValueError(f"{path} is not a directory")
    return path
