"""Whether the workbench is served."""

from pydantic import BaseModel, Field


class PageOptions(BaseModel):
    """Whether there is a page at `/`."""

    no_page: bool = Field(False, description="leave the workbench at / away")
