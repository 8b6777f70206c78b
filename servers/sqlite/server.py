"""The SQLite server: its tools, resources and prompt.

Every function in a `tools.py`, and in `resources.py`, says what a client sees; the work is done by the files beside
it, in the threads of the connections.
"""

# Importing a part adds what it has to the server.
from . import prompts, resources  # noqa: F401
from .app import app
from .describing import tools as describing  # noqa: F401
from .exporting import resources as exports  # noqa: F401
from .exporting import tools as exporting  # noqa: F401
from .reading import tools as reading  # noqa: F401
from .watching import resources as watching  # noqa: F401
from .writing import tools as writing  # noqa: F401

# isort: split
# These stand on the tools for reading and writing, and are listed after all others.
from .canned import tools as canned  # noqa: F401

__all__ = ["app"]
