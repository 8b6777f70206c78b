"""What the demo prints: a line for each thing that was done, or every call with all that came of it."""

import re
import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

from shared.client.client import Client

# Servers put what is not theirs between two lines with the same mark.
_FENCE = re.compile(r"^<(\w+-[0-9a-f]+)>[^\n]*\n(.*?)\n?^</\1>$", re.DOTALL | re.MULTILINE)


class Teller(NamedTuple):
    """What is told of the work through one connection: `full` has all of it, `brief` a line here and there."""

    full: bool
    brief: bool

    def show(self, text: str) -> None:
        """Prints a line of the full form."""
        if self.full:
            say(text)

    def sum_up(self, what: str, text: str) -> None:
        """Print a line of the brief form: the tool, and what it did."""
        if self.brief:
            say(f"  {what:18} {text}")

    def quote(self, lines: Iterable[str]) -> None:
        """Prints lines of a result below what was done, in the brief form."""
        if self.brief:
            for line in lines:
                say(f"{'':21}| {line}")

    async def call(self, client: Client, tool: str, **arguments: Any) -> list[str]:
        """Calls a tool; the lines of its text, within the fence where there is one. Raises RuntimeError where it
        failed."""
        return await self._called(client, tool, arguments, refused=False)

    async def refused(self, client: Client, tool: str, **arguments: Any) -> list[str]:
        """Calls a tool that has to refuse; the lines that say why. Raises RuntimeError where it did not."""
        return await self._called(client, tool, arguments, refused=True)

    async def _called(self, client: Client, tool: str, arguments: dict[str, Any], *, refused: bool) -> list[str]:
        result = await client.call_tool(tool, arguments)
        if bool(result.is_error) != refused:
            raise RuntimeError(f"{tool} {'was not refused' if refused else 'failed'}: {result.text}")
        shown = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
        self.show(f"-> {tool}({shown})")
        for line in result.text.splitlines():
            self.show(f"   {line}")
        fenced = _FENCE.search(result.text)
        return (fenced[2] if fenced else result.text).splitlines()


def say(text: str) -> None:
    """Prints at once."""
    print(text, file=sys.stdout, flush=True)  # noqa: T201 - showing is what a demo is for
