"""Options of several servers: which of them run, which are joined, and whether the workbench is served."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, PlainValidator

from shared.client.group.names import check_server_name
from shared.program.settings.options import option, positional

JOINED = "joined"
"""The name of the gateway server in logs and metrics."""


class Selection(BaseModel):
    """Which servers run, and whether they are also offered as one."""

    names: list[str] = positional("server to serve (default: all configured ones)", "NAME")
    config: Path | None = option(
        None,
        "YAML file of these options by name, such as log-level, and of each server's settings under "
        "`servers`; paths are relative to the file's directory",
        "FILE",
    )
    catalog: Path | None = option(None, "catalog to use instead of the bundle's", "FILE")
    join: bool = Field(False, description="also offer all of them as one server, at /mcp")
    prefix: Literal["auto", "always"] = Field(
        "auto",
        description="when to prefix names with the name of their server: always, or only if two are the same",
    )


def _read_join(value: Any) -> bool | list[str]:
    if value in ("0", "1"):  # the values from a command line
        return bool(value == "1")
    if isinstance(value, bool) or (isinstance(value, list) and all(isinstance(item, str) for item in value)):
        return value
    raise ValueError("must be true or a list of server names")


class JoinOptions(BaseModel):
    """Which servers are also offered as one, and whether the names of its tools get a prefix."""

    join: Annotated[bool | list[str], PlainValidator(_read_join)] = Field(
        False, description="also offer all of them as one server, at /mcp"
    )
    prefix: Literal["auto", "always"] = Field(
        "auto",
        description="whether names there always start with the name of their server, or only if two are the same",
    )

    def members(self, served: Sequence[str], existing: Sequence[str]) -> list[str]:
        """Return which of the `served` servers are joined. `existing` are all configured servers. Raises ValueError
        with a one-line message if an option names a server that does not exist, or if a name can't be a prefix of
        tool names."""
        if isinstance(self.join, bool):
            return list(map(check_server_name, served)) if self.join else []
        for name in self.join:
            if name not in existing:
                raise ValueError(f"join: there is no server {name!r}; available: {', '.join(existing)}")
        return [check_server_name(name) for name in served if name in self.join]


class WorkbenchOptions(BaseModel):
    """Whether the workbench is served at `/`."""

    no_page: bool = Field(False, description="do not serve the workbench at /")
