"""What the demo prints: every call, and what came of it."""

import sys
from typing import Any

from shared.client.client import Client

__all__ = ["call", "refused", "say"]


async def call(client: Client, tool: str, **arguments: Any) -> None:
    """Calls a tool, and shows the call and its text. Raises RuntimeError where it failed."""
    result = await client.call_tool(tool, arguments)
    text = result["content"][0]["text"]
    if result.get("isError"):
        raise RuntimeError(f"{tool} failed: {text}")
    _show(tool, arguments, text)


async def refused(client: Client, tool: str, **arguments: Any) -> None:
    """Calls a tool that has to refuse, and shows why it does. Raises RuntimeError where it did not."""
    result = await client.call_tool(tool, arguments)
    text = result["content"][0]["text"]
    if not result.get("isError"):
        raise RuntimeError(f"{tool} was not refused: {text}")
    _show(tool, arguments, text)


def _show(tool: str, arguments: dict[str, Any], text: str) -> None:
    shown = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    say(f"-> {tool}({shown})")
    for line in text.splitlines():
        say(f"   {line}")


def say(text: str) -> None:
    """Prints at once."""
    print(text, file=sys.stdout, flush=True)  # noqa: T201 - showing is what a demo is for
