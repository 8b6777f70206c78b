"""What the settings of such servers have in common. The options each server declares by itself, in its own order."""

from collections.abc import Collection
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field

from servers.common.within import place_within
from shared.program.settings.options import expand_home


class Narrowing(BaseModel):
    """What a principal can be given of the databases."""

    databases: list[str] = Field([], description="names of databases that the server has")
    files: Path | None = Field(None, description="directory in that of the server, to import from")

    def place_files(self, known: Collection[str], files: Path | None) -> Path | None:
        """The directory that is given of `files`, where of the databases with `known` names some are given and no
        others. Raises ValueError for what is not here."""
        for name in self.databases:
            if name not in known:
                raise ValueError(f"databases: there is no database {name!r}; there are: {', '.join(known)}")
        if not self.databases:
            raise ValueError("databases: name at least one")
        return None if self.files is None else place_within(self.files, [] if files is None else [files])


def _is_a_directory(directory: Path | None) -> Path | None:
    if directory is not None and not expand_home(directory).is_dir():
        raise ValueError(f"{directory} is not a directory")
    return directory and expand_home(directory)


Directory = Annotated[Path | None, AfterValidator(_is_a_directory)]
"""A directory that is there, or None."""


def rows_unasked(confirm: bool, confirm_rows: int | None) -> int | None:
    """How many rows may change without asking the user, by `--confirm` and `--confirm-rows`; None where nobody needs
    to be asked."""
    return 0 if confirm and confirm_rows is None else confirm_rows
