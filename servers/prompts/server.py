"""The prompt library: its prompts, tools and resources.

Each of the files named here says what a client sees; the work is done by the files beside it.
"""

# Importing a part adds what it has to the server.
from . import prompts, resources, tools  # noqa: F401
from .app import app
from .skills import resources as skills  # noqa: F401
from .watching import resources as watching  # noqa: F401

__all__ = ["app"]
