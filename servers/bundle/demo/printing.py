"""The output of the demo: a line for each piece of work, or each call with its result."""

import re
import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

from shared.client.client import Client

# Servers put untrusted text between two lines with the same random tag.
_FENCE = re.compile(r"^<(\w+-[0-9a-f]+)>[^\n]*\n(.*?)\n?^</\1>$", re.DOTALL | re.MULTILINE)


class DemoOutput(NamedTuple):
    """Prints what is done over one connection: each call if `full`, a summary if `brief`, nothing if neither."""

    full: bool
    brief: bool

    def show(self, text: str) -> None:
        """Print a line of the full output."""
        if self.full:
            say(text)

    def summarize(self, what: str, text: str) -> None:
        """Print a line of the summary: `what` was called, and its effect as `text`."""
        if self.brief:
            say(f"  {what:18} {text}")

    def quote(self, lines: Iterable[str]) -> None:
        """Print lines of a result below a line of the summary."""
        if self.brief:
            for line in lines:
                say(f"{'':21}| {line}")

    async def call(self, client: Client, tool: str, **arguments: Any) -> list[str]:
        """Call a tool and return the lines of its text; if untrusted text in it is between tags, only those lines.
        Raises RuntimeError if the call failed."""
        return await self._call(client, tool, arguments, expect_refusal=False)

    async def expect_refusal(self, client: Client, tool: str, **arguments: Any) -> list[str]:
        """Call a tool that must refuse, and return the lines with the reason. Raises RuntimeError if it did not."""
        return await self._call(client, tool, arguments, expect_refusal=True)

    async def _call(self, client: Client, tool: str, arguments: dict[str, Any], *, expect_refusal: bool) -> list[str]:
        result = await client.call_tool(tool, arguments)
        if bool(result.is_error) != expect_refusal:
            raise RuntimeError(f"{tool} {'was not refused' if expect_refusal else 'failed'}: {result.text}")
        shown = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
        self.show(f"-> {tool}({shown})")
        for line in result.text.splitlines():
            self.show(f"   {line}")
        fenced = _FENCE.search(result.text)
        return (fenced[2] if fenced else result.text).splitlines()


def say(text: str) -> None:
    """Print a line without buffering."""
    print(text, file=sys.stdout, flush=True)  # noqa: T201 - showing is what a demo is for
