"""The filesystem server: eighteen tools, `file://` resources, and notice of their changes.

Every function in a `tools.py`, and in `resources.py`, says what a client sees; the work is done by the files beside
it, in worker threads but for the small reads of `shared/kit/rooted/small.py`. A cancelled call waits for its thread,
so that no write is left half done.
"""

# Importing a part adds what it has to the server.
from . import resources  # noqa: F401
from .app import app
from .finding import tools as finding  # noqa: F401
from .reading import tools as reading  # noqa: F401
from .watching import tools as watching  # noqa: F401
from .writing import tools as writing  # noqa: F401

__all__ = ["app"]
