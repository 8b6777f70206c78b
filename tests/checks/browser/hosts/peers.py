"""npm packages of the browser tests, pinned in the `package.json` here: two hosts of MCP Apps, and axe-core."""

from functools import cache
from pathlib import Path

from tests import npm

__all__ = ["FOLDER", "MODULES", "require_node"]

FOLDER = Path(__file__).parent
MODULES = FOLDER / "node_modules"


@cache
def require_node() -> str:
    """Installs the packages; returns Node. If that is impossible, skips the test, and fails under CI=true."""
    node = npm.find_node()
    npm.require(node, FOLDER, "the hosts of apps")
    return str(node)
