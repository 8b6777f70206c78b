"""The options by which an operator says which servers run in one process."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field

from shared.program.settings.options import option, positional


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
