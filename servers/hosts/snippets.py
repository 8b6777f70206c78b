"""What is pasted into the configuration of a host."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["claude_desktop", "snippet"]


def claude_desktop(servers: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The entries of `claude_desktop_config.json` that start these servers, each by its command."""
    entries = {name: {"command": command, "args": arguments} for name, (command, *arguments) in servers.items()}
    return {"mcpServers": entries}


def snippet(config: dict[str, Any]) -> str:
    """`config` as it is pasted."""
    return json.dumps(config, indent=2, ensure_ascii=False)
