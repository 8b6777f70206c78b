"""Which of several servers run, which are offered as one, and whether with a page: the options that say so."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, PlainValidator

from shared.client.group.names import check_server_name
from shared.program.settings.options import option, positional

JOINED = "joined"
"""What all of them together are called."""


class Selection(BaseModel):
    """Which servers run, and whether they are offered as one as well."""

    names: list[str] = positional("server to serve (default: all that are configured)", "NAME")
    config: Path | None = option(
        None,
        "YAML file of these options by their names, such as log-level, and of the settings of each "
        "server under servers: NAME:; paths begin at its directory",
        "FILE",
    )
    catalog: Path | None = option(None, "catalog of other servers to use instead", "FILE")
    join: bool = Field(False, description="offer all of them as one server as well, at /mcp")
    prefix: Literal["auto", "always"] = Field(
        "auto", description="when names there begin with that of their server: always, or only where two are the same"
    )


def _all_or_some(value: Any) -> bool | list[str]:
    if value in ("0", "1"):  # so says a command line
        return bool(value == "1")
    if isinstance(value, bool) or (isinstance(value, list) and all(isinstance(one, str) for one in value)):
        return value
    raise ValueError("give true, or a list of the names of servers")


class Joining(BaseModel):
    """Which servers are offered as one as well, and how its tools are called."""

    join: Annotated[bool | list[str], PlainValidator(_all_or_some)] = Field(
        False, description="offer all of them as one server as well, at /mcp"
    )
    prefix: Literal["auto", "always"] = Field(
        "auto",
        description="whether names there always begin with that of their server, or only where two are the same",
    )

    def members(self, served: Sequence[str], known: Sequence[str]) -> list[str]:
        """The names of those that are joined, among those that are `served`, which are some or all of the `known`.
        Raises ValueError, in one line, for one that is not known, or has a name that no tool can have before it."""
        if isinstance(self.join, bool):
            return list(map(check_server_name, served)) if self.join else []
        for name in self.join:
            if name not in known:
                raise ValueError(f"join: there is no server {name!r}; there are: {', '.join(known)}")
        return [check_server_name(name) for name in served if name in self.join]


class PageOptions(BaseModel):
    """Whether there is a page at `/`."""

    no_page: bool = Field(False, description="leave the workbench at / away")
