"""The server that several are together, for a program that runs them."""

from collections.abc import Sequence
from typing import Any, Literal

from shared import Server
from shared.gateway.joined.gateway import gateway
from shared.ops.supervised import Supervised
from shared.server.limits import CallLimits


def joined_server(
    members: Sequence[Supervised], declared: Sequence[Server[Any]], prefix: Literal["auto", "always"]
) -> Server[Any]:
    """The server that all `members` are together, which have these declarations: a call may cost what the most
    generous of them lets it cost."""
    app = gateway(members, prefix=prefix)
    budgets = [server.budget for server in declared]
    app.budget = CallLimits(
        result_bytes=max(one.result_bytes for one in budgets),
        seconds=max(one.seconds for one in budgets),
        entries=max(one.entries for one in budgets),
    )
    app.limits = declared[0].limits
    return app
