"""What the operator of the filesystem server may set."""

from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, Field, field_validator, model_validator

from shared.options import positional

__all__ = ["Settings"]


class Settings(BaseModel):
    """The allowed directories, and whether files may be changed."""

    roots: list[Path] = positional("directories that may be read", "DIR")
    allow_write: bool = Field(False, description="offer the tools that change files")
    poll: bool = Field(False, description="look for changes every second, where the system tells of none")

    @field_validator("roots", mode="before")
    @classmethod
    def _are_named(cls, roots: Any) -> Any:
        # A path that is empty, as that of an unset shell variable, would mean the working directory.
        if isinstance(roots, list) and "" in roots:
            raise ValueError("the name of a directory is empty")
        return roots

    @field_validator("roots")
    @classmethod
    def _are_directories(cls, roots: list[Path]) -> list[Path]:
        for root in roots:
            if not root.expanduser().is_dir():
                raise ValueError(f"{root} is not a directory")
        return roots

    @model_validator(mode="after")
    def _are_there(self) -> Self:
        if not self.roots:
            raise ValueError("give at least one DIR that may be read")
        return self
