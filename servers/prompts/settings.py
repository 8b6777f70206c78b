"""The settings of the prompt library."""

from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import BaseModel, Field, field_validator, model_validator

from servers.common.within import place_within
from shared.program.messages import needs_extra
from shared.program.settings.options import expand_home, option, positional

from .library.libraries import STARTER
from .remote.address import FORM, parse_address

if TYPE_CHECKING:
    from .remote.cache import Checkout


class Narrowing(BaseModel):
    """What a principal can be given of the libraries."""

    libraries: list[Path] = Field([], description="directories of prompts, in those that the server has")
    files: list[Path] = Field([], description="directories in those whose files the server suggests")


class Settings(BaseModel):
    """The libraries, whether prompts may be changed there, and what files may be suggested."""

    narrowing: ClassVar[type[BaseModel]] = Narrowing

    libraries: list[Path] = positional("directories of prompts; of two with one name that of the first counts", "DIR")
    starter: bool = Field(False, description="also serve the prompts that come with the server, as without any DIR")
    allow_write: bool = Field(False, description="offer the tools that save and delete prompts, in the first DIR")
    confirm: bool = Field(False, description="ask the user before a prompt is saved or deleted")
    library: list[str] = option([], f"library in a git repository, after each DIR: {FORM}", "URL")
    refresh_minutes: float = Field(30.0, ge=0, description="how often each --library is looked at; 0: at the start")
    files: list[Path] = option([], "directory whose files are suggested where an argument is a file", "DIR")

    @field_validator("libraries", "files", mode="before")
    @classmethod
    def _are_named(cls, directories: Any) -> Any:
        # An empty path, as from an unset shell variable, would mean the working directory.
        if isinstance(directories, list) and "" in directories:
            raise ValueError("the name of a directory is empty")
        return directories

    @field_validator("libraries", "files")
    @classmethod
    def _are_directories(cls, directories: list[Path]) -> list[Path]:
        for directory in directories:
            if not expand_home(directory).is_dir():
                raise ValueError(f"{directory} is not a directory")
        return [expand_home(directory) for directory in directories]

    @field_validator("library")
    @classmethod
    def _are_addresses(cls, addresses: list[str]) -> list[str]:
        return [str(parse_address(address)) for address in addresses]

    @model_validator(mode="after")
    def _has_a_place_to_write(self) -> Self:
        if self.allow_write and not self.libraries:
            raise ValueError("--allow-write takes a DIR: the prompts that come with the server are not changed")
        return self

    @model_validator(mode="after")
    def _is_installed(self) -> Self:
        # They are loaded only with the first prompt, which is too late for this error.
        if any(find_spec(library) is None for library in ("jinja2", "yaml", "watchfiles")):
            raise ValueError(needs_extra("prompts"))
        return self

    @cached_property
    def roots(self) -> list[Path]:
        """The directories of all libraries, the one with precedence first."""
        roots = [*self.libraries, *(checkout.root for checkout in self.checkouts)]
        return [*roots, STARTER] if self.starter or not roots else roots

    @cached_property
    def checkouts(self) -> "list[Checkout]":
        """The libraries in git repositories."""
        if not self.library:
            return []
        from .remote.cache import Checkout

        return [Checkout(parse_address(address)) for address in self.library]

    def narrowed(self, narrowing: Narrowing) -> Self:
        """Return these settings for a principal with only these libraries and suggested files. Prompts are saved
        where they are saved here, which may be outside of all of them. Raises ValueError for a directory that is
        outside of those here."""
        if not narrowing.libraries:
            raise ValueError("libraries: name at least one")
        libraries = [place_within(directory, self.roots) for directory in narrowing.libraries]
        files = [place_within(directory, self.files) for directory in narrowing.files]
        written = self.libraries[0].resolve() if self.allow_write else None
        writes = written is not None and libraries[0].is_relative_to(written)
        own = self.model_copy(
            update={"libraries": libraries, "library": [], "files": files, "starter": False, "allow_write": writes}
        )
        own.__dict__.pop("roots", None)
        own.__dict__.pop("checkouts", None)
        return own
