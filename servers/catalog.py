"""`catalog.yaml` as typed records: which servers there are, how each is started, what it offers."""

from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

__all__ = ["CATALOG", "Argument", "Catalog", "Entry", "Tools", "load_catalog"]

CATALOG = Path(__file__).resolve().parent.parent / "catalog.yaml"
"""The bundle's own catalog, in a checkout."""


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Argument(_Record):
    """One thing the operator may set; without an `option` it takes the arguments that have no name."""

    name: str
    description: str
    metavar: str | None = None
    option: str | None = None
    environment: str | None = None
    required: bool = False


class Tools(_Record):
    """The tools on offer at once, and those that need writing to be allowed."""

    read: list[str] = []
    write: list[str] = []


class Entry(_Record):
    """One server."""

    name: str = Field(pattern=r"^[a-z][a-z0-9-]*$")
    title: str
    summary: str
    module: str
    script: str
    extra: str | None = None
    """The extra that brings the libraries only this server needs."""
    transports: list[Literal["stdio", "http"]]
    arguments: list[Argument] = []
    tools: Tools = Tools()
    resource_templates: list[str] = []
    prompts: list[str] = []


class Catalog(_Record):
    """All servers."""

    servers: list[Entry]


def load_catalog(path: Path = CATALOG) -> Catalog:
    """The catalog in the file at `path`. Raises OSError, and ValueError for what is no catalog."""
    try:
        return Catalog.model_validate(yaml.safe_load(path.read_text("utf-8")))
    except yaml.YAMLError as error:
        raise ValueError(f"{path.name} is not YAML: {error}") from None
