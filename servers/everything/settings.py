"""The settings of the test server."""

from pydantic import BaseModel, Field


class Settings(BaseModel):
    """The only option."""

    confirm: bool = Field(False, description="ask the user before changing a list or the watched resource")
