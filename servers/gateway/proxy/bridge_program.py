"""A bridge as a program: it connects to the server behind it once, and then serves clients."""

from pydantic import BaseModel, Field

from shared.program.run import run_app
from shared.program.settings.options import option

from ..bridge.bridge import bridge
from ..bridge.upstream import Connect, Upstream
from ..rules.extension import rules
from ..rules.names import Rules
from .first_connection import FirstConnection
from .options import Options


class Limits(BaseModel):
    """The tools that clients see of the server behind it, and the time that it may take to start."""

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
    """The bridge to one server, as a program that serves it."""

    def __init__(
        self,
        name: str,
        connect: Connect,
        limits: Limits,
        *,
        shared: bool = False,
        processes: int | None = None,
        advice: str = "",
    ) -> None:
        """`name` is the server's name in messages, `advice` the hint for an authorization error; `shared` is true if
        all clients share one session with it, `processes` limits the sessions if each is a process."""
        self._first = FirstConnection(name, connect, limits.timeout, advice)
        self._upstream = Upstream(name, self._first.connect, shared, processes, limits.timeout)
        self._rules = Rules(allow=tuple(limits.allow) or None, deny=tuple(limits.deny))

    def open(self, program: str, options: Options, *, exposed: str | None = None) -> int:
        """Serve until a client or a signal ends the program; return the exit code. `exposed` is the location of a
        secret that other users can read."""
        extensions = [rules(self._rules)] if self._rules.affect_tools else []
        app = bridge(self._upstream, extensions=extensions)
        return run_app(program, app, options, exposed=exposed, ready=self._first.wait)
