"""How a desktop host is told of a server."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["claude_desktop", "script_path", "snippet"]


def script_path(script: str) -> Path:
    """The absolute path of a console script of this installation: hosts start with a bare PATH, and a folder
    called `servers` in their working directory must shadow nothing. Raises FileNotFoundError."""
    suffix = ".exe" if sys.platform == "win32" else ""
    path = Path(sys.executable).parent / f"{script}{suffix}"
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; install the bundle into this environment first")
    return path


def claude_desktop(name: str, script: str, arguments: Sequence[str]) -> dict[str, Any]:
    """The entry of `claude_desktop_config.json` that starts a server with `arguments`."""
    return {"mcpServers": {name: {"command": str(script_path(script)), "args": list(arguments)}}}


def snippet(config: dict[str, Any]) -> str:
    """`config` as it is pasted."""
    return json.dumps(config, indent=2, ensure_ascii=False)
