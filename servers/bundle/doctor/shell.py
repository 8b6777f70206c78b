"""Does something in the environment of this shell change servers that are started from it?"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ..catalog import Entry
from ..hosts.clients import Machine
from .command_line import known_variables
from .findings import Finding, warning
from .tokens import check_token_file

__all__ = ["check_shell"]


def check_shell(machine: Machine, entries: Sequence[Entry]) -> Iterator[Finding]:
    """Names each variable that a server would take notice of, and looks at the token file that one may name."""
    where = "this shell"
    for variable, server in known_variables(entries).items():
        if machine.environment.get(variable):
            what = f"{variable} is set, and changes {server} when it is started from here"
            yield warning(where, what, f"unset {variable}, unless it is meant")
    token = machine.environment.get("MCP_TOKEN_FILE")
    if token:
        yield from check_token_file(Path(token), where)
