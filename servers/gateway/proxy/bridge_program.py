"""A bridge as a program: it first connects to the server behind it, and then serves clients."""

from pydantic import BaseModel, Field

from shared.program.run import run_app
from shared.program.settings.options import option

from ..bridge.bridge import bridge
from ..bridge.upstream import Connect, Upstream
from ..rules.extension import rules
from ..rules.names import Rules
from .first_connection import FirstConnection
from .options import Options


class BridgeOptions(BaseModel):
    """Options of the program: which tools of the server clients see, and how long the server may take to start."""

    allow: list[str] = option(
        [], "show only this tool to clients; a* means every tool whose name starts with a", "NAME"
    )
    deny: list[str] = option([], "hide this tool from clients", "NAME")
    timeout: float = Field(
        60.0,
        gt=0,
        description="seconds that the server may take to start and answer",
        json_schema_extra={"metavar": "SECONDS"},
    )


class BridgeProgram:
    """A program that serves the bridge to one server."""

    def __init__(
        self,
        name: str,
        connect: Connect,
        bridge_options: BridgeOptions,
        *,
        shares_session: bool = False,
        max_processes: int | None = None,
        advice: str = "",
    ) -> None:
        """`name` is the server's name in messages. `shares_session` is true if all clients share one session with the
        server; `max_processes` limits the sessions if each is a process. `advice` is the end of the message for an
        authorization error."""
        self._first = FirstConnection(name, connect, bridge_options.timeout, advice)
        self._upstream = Upstream(name, self._first.connect, shares_session, max_processes, bridge_options.timeout)
        self._rules = Rules(allow=tuple(bridge_options.allow) or None, deny=tuple(bridge_options.deny))

    def run(self, program: str, options: Options, *, exposed: str | None = None) -> int:
        """Serve until the client or a signal ends the program; return the exit code. `exposed` is the file of a
        secret that other users can read, if any: a warning names it."""
        extensions = [rules(self._rules)] if self._rules.affect_tools else []
        app = bridge(self._upstream, extensions=extensions)
        return run_app(program, app, options, exposed=exposed, wait_ready=self._first.wait)
