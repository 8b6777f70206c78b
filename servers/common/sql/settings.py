"""Settings that all SQL servers share.

The help lists the options in the order in which pydantic collects them: those of the last base class of a model come
first. The shared options are in two models, so that a server can put its own options between them. If a subclass
declares an option again with another description, the option keeps its position.
"""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Protocol, Self

from pydantic import AfterValidator, BaseModel, Field, PrivateAttr, model_validator

from shared.program.settings.options import expand_home, option

from ..within import resolve_within


class Narrowing(BaseModel, defer_build=True):
    """What the operator allows one principal: some of the databases, and a directory of files."""

    databases: list[str] = Field([], description="names of the databases that the principal may use")
    files: Path | None = Field(None, description="directory to import from, within the directory of the server")

    def resolve_files(self, known_names: Collection[str], files: Path | None) -> Path | None:
        """Check the databases against the `known_names`, and return the principal's directory within `files`.

        Raises ValueError for a name or directory that the server does not have.
        """
        for name in self.databases:
            if name not in known_names:
                raise ValueError(f"databases: there is no database {name!r}; available: {', '.join(known_names)}")
        if not self.databases:
            raise ValueError("databases: name at least one")
        return None if self.files is None else resolve_within(self.files, [] if files is None else [files])


def _require_directory(directory: Path | None) -> Path | None:
    if directory is not None and not expand_home(directory).is_dir():
        raise ValueError(f"{directory} is not a directory")
    return directory and expand_home(directory)


Directory = Annotated[Path | None, AfterValidator(_require_directory)]
"""A directory that exists, or None."""


class Source(Protocol):
    """A database as the operator configured it."""

    @property
    def name(self) -> str:
        """The name that clients use."""

    @property
    def writable(self) -> bool:
        """True if the database may be changed."""


class StatementLimits(BaseModel):
    """The limits of one statement and its result."""

    timeout: float = Field(
        30, gt=0, le=3_600, description="seconds until a statement is stopped, unless it is a task"
    )
    busy_timeout: float = Field(5, ge=0, le=3_600, description="seconds to wait for a lock held by another process")
    max_rows: int = Field(10_000, ge=1, description="maximum number of rows in one answer")
    max_page: int = Field(100_000, ge=2_000, le=900_000, description="maximum bytes of rows in one answer")
    max_cell: int = Field(
        10_000, ge=100, description="maximum bytes of one value in an answer; longer ones are truncated"
    )
    max_value: int = Field(16_000_000, ge=1_000, description="maximum bytes of one value in a statement")


class SqlSettings(StatementLimits):
    """The options for confirmation by the user, files and concurrency. The configured databases can be limited to
    some of them."""

    narrowing: ClassVar[type[BaseModel]] = Narrowing
    missing_hint: ClassVar[str]
    """The error if no database is configured."""
    naming_hint: ClassVar[str]
    """The error if two databases have the same name."""
    _names: frozenset[str] | None = PrivateAttr(None)

    confirm: bool = Field(False, description="ask the user before each change")
    confirm_rows: int | None = Field(
        None,
        ge=0,
        description="ask the user before changing the schema, or more than this many rows",
        json_schema_extra={"metavar": "ROWS"},
    )
    files: Directory = option(None, "directory with CSV files to import", "DIR")
    readers: int = Field(8, ge=1, le=64, description="maximum number of queries at once on each database")
    queries: Directory = option(None, "directory of SQL files that become tools", "DIR")
    max_export: int = Field(100_000_000, ge=1_000, description="maximum bytes of one export")

    @property
    def sources(self) -> Sequence[Source]:
        """The databases that the server opens, with their access modes. Subclasses must leave out those that are not
        in `_names`, unless it is None."""
        raise NotImplementedError

    @model_validator(mode="after")
    def _require_databases(self) -> Self:
        if not self.sources:
            raise ValueError(self.missing_hint)
        names = [source.name for source in self.sources]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two databases are called {name!r}; {self.naming_hint}")
        return self

    def narrow(self, narrowing: Narrowing) -> Self:
        """Return a copy of these settings for one principal, limited to the databases and the directory of
        `narrowing`.

        Raises ValueError for a name or directory that the server does not have.
        """
        known_names = [source.name for source in self.sources]
        settings = self.model_copy(update={"files": narrowing.resolve_files(known_names, self.files)})
        settings.limit_to(narrowing.databases)
        return settings

    def limit_to(self, names: Iterable[str]) -> None:
        """Limit the databases to those with these names."""
        self._names = frozenset(names)
        self.__dict__.pop("sources", None)  # subclasses cache it

    @property
    def rows_without_consent(self) -> int | None:
        """Number of rows that may be changed without asking the user; None if the user is never asked."""
        return 0 if self.confirm and self.confirm_rows is None else self.confirm_rows

    @property
    def writes(self) -> bool:
        """True if at least one database may be changed."""
        return any(source.writable for source in self.sources)
