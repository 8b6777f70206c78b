"""The bench's settings."""

from pydantic import BaseModel, Field


class Settings(BaseModel):
    """Whether the user is asked first."""

    confirm: bool = Field(False, description="ask the user before changing a list or the watched resource")
