"""Settings of the PostgreSQL server."""

from functools import cached_property
from typing import ClassVar, Self

from pydantic import BaseModel, Field, field_validator

from servers.common.sql import settings
from servers.common.sql.settings import SqlSettings
from shared.program.settings.options import option

from .engine.deadline import Limits
from .engine.target import Target, parse_target
from .write.allowed import AllowedDdl, parse_allowed


class _Databases(BaseModel):
    databases: list[str] = Field(
        [],
        repr=False,  # they may contain passwords
        description=(
            "databases: [NAME=]postgresql://..., host=... dbname=... or service=NAME; each may end with :ro or :rw"
        ),
        json_schema_extra={"positional": "URL", "required": True},
    )
    allow_write: bool = Field(False, description="allow changes, in every database without :ro")
    allow_privileged: bool = Field(
        False,
        description="accept superusers, and roles that may read files, run programs or end other users' sessions",
    )
    allow_ddl: list[str] = option([], "also let statements manage policies, grants, roles, or extension=NAME", "WHAT")
    hide: list[str] = option(
        [], "TABLE or TABLE.COLUMN that must be hidden: refuse to start if the role may read it", "NAME"
    )
    query_tool: bool = Field(
        False, description="also offer the tool and resources of the archived npm server, as mcp-server-postgres does"
    )
    watch_triggers: bool = Field(False, description="create triggers that report changes, in writable databases")


class Narrowing(settings.Narrowing):
    """What the operator allows one principal: some of the databases, a directory, and further tables and columns that
    the databases must hide."""

    hide: list[str] = Field(
        [], description="tables and columns that the databases must hide, in addition to those of --hide"
    )


class Settings(SqlSettings, _Databases):
    """All settings of the PostgreSQL server."""

    narrowing: ClassVar[type[BaseModel]] = Narrowing
    missing_hint: ClassVar[str] = "specify at least one URL of a database"
    naming_hint: ClassVar[str] = "name them: NAME=postgresql://..."

    busy_timeout: float = Field(5, ge=0, le=3_600, description="seconds to wait for a lock held by another session")
    max_value: int = Field(16_000_000, ge=1_000, description="maximum bytes of one row from the database")

    @cached_property
    def sources(self) -> list[Target]:
        """The databases that this server opens, with their access modes."""
        targets = [parse_target(url, self.allow_write) for url in self.databases]
        return [url for url in targets if self._names is None or url.name in self._names]

    def narrow(self, narrowing: settings.Narrowing) -> Self:
        """Return a copy of these settings for one principal, limited by `narrowing`. Raises ValueError."""
        narrowed = super().narrow(narrowing)
        narrowed.hide = [*self.hide, *getattr(narrowing, "hide", ())]
        return narrowed

    @field_validator("allow_ddl")
    @classmethod
    def _require_known(cls, allow_ddl: list[str]) -> list[str]:
        parse_allowed(allow_ddl)
        return allow_ddl

    @property
    def allowed_ddl(self) -> AllowedDdl:
        """What statements may manage in addition to tables (`--allow-ddl`)."""
        return parse_allowed(self.allow_ddl)

    @property
    def limits(self) -> Limits:
        """The limits of one statement."""
        return Limits(self.timeout, self.busy_timeout, self.max_value)
