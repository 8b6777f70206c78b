"""A bridge as a program: what stands behind it is reached once, and then clients are served."""

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
    """What clients are shown of the server behind it, and how long it may take to be there."""

    allow: list[str] = option([], "tool that clients are shown, and no others; a* is all that begin with a", "NAME")
    deny: list[str] = option([], "tool that clients are not shown", "NAME")
    timeout: float = Field(
        60.0,
        gt=0,
        description="seconds that the server may take to start and answer",
        json_schema_extra={"metavar": "SECONDS"},
    )


class Door:
    """The way to one server, to be opened for clients."""

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
        """`name` is how messages call the server, `advice` what helps where it lets nobody in; `shared` is whether
        all clients have one session with it, `processes` how many there may be where each is a process."""
        self._first = FirstConnection(name, connect, limits.timeout, advice)
        self._upstream = Upstream(name, self._first.connect, shared, processes, limits.timeout)
        self._rules = Rules(allow=tuple(limits.allow) or None, deny=tuple(limits.deny))

    def open(self, program: str, options: Options, *, exposed: str | None = None) -> int:
        """Serves it until a client or a signal ends the program; the exit code. `exposed` is a secret that others can
        read."""
        extensions = [rules(self._rules)] if self._rules.concern_tools else []
        app = bridge(self._upstream, extensions=extensions)
        return run_app(program, app, options, exposed=exposed, ready=self._first.made)
