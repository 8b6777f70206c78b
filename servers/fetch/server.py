"""The fetch server: its tools, resources and prompt."""

# Importing a part adds what it has to the server.
from . import prompts, resources, tools  # noqa: F401
from .app import app

__all__ = ["app"]
