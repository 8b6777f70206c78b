"""How a desktop host is told of a server."""

import json
import sys
from collections.abc import Mapping, Sequence
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


def claude_desktop(servers: Mapping[str, tuple[str, Sequence[str]]]) -> dict[str, Any]:
    """The entries of `claude_desktop_config.json` that start these servers, each by its script and its arguments."""
    entries = {
        name: {"command": str(script_path(script)), "args": list(arguments)}
        for name, (script, arguments) in servers.items()
    }
    return {"mcpServers": entries}


def snippet(config: dict[str, Any]) -> str:
    """`config` as it is pasted."""
    return json.dumps(config, indent=2, ensure_ascii=False)
