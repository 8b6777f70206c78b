"""The gateway server that joins several servers, for the programs that run it."""

from collections.abc import Collection, Sequence
from typing import Any, Literal

import anyio

from shared import Server
from shared.auth.policy import Rules
from shared.extensions.narrowing import narrowing
from shared.server.declaration import Declaration
from shared.server.dispatch.limits import CallLimits
from shared.server.extension import Extension
from shared.telemetry.supervised import SupervisedServer

from ..joined.gateway import JoinedSettings, gateway

OPENING_SECONDS = 8.0
"""Seconds that clients wait at startup until all servers are open: many clients request lists at once, and never
again. Some clients wait only ten seconds for an answer, so it is less."""


async def wait_until_settled(members: Sequence[SupervisedServer]) -> None:
    """Wait until each of `members` is open or has failed, for at most `OPENING_SECONDS`."""
    with anyio.move_on_after(OPENING_SECONDS):
        for member in members:
            await _wait_until_member_settled(member)


async def _wait_until_member_settled(member: SupervisedServer) -> None:
    changed = anyio.Event()
    unwatch = member.watch(changed.set)
    try:
        if member.running is None and not member.pause:
            await changed.wait()
    finally:
        unwatch()


def principal_extensions(rules: Sequence[Rules]) -> list[Extension[Any]]:
    """Return the extensions for a gateway that joins servers with these rules: it gets a separate run for the
    principals that one of the rules names, as these servers do."""
    names = {name for server_rules in rules for name in server_rules.principals}
    return [narrowing({name: JoinedSettings(principals=name) for name in sorted(names)})] if names else []


def make_gateway(
    members: Sequence[SupervisedServer],
    declarations: Sequence[Declaration[Any]],
    prefix: Literal["auto", "always"],
    third_party_names: Collection[str],
) -> Server[Any]:
    """Return the gateway that joins all `members`. Its limits for one call are the most generous ones in
    `declarations`, those of the members. `third_party_names` are the members that are third-party servers."""
    app = gateway(members, prefix=prefix, third_party_names=third_party_names)
    budgets = [server.budget for server in declarations]
    app.budget = CallLimits(
        result_bytes=max(budget.result_bytes for budget in budgets),
        seconds=max(budget.seconds for budget in budgets),
        entries=max(budget.entries for budget in budgets),
    )
    app.limits, app.task_limits = declarations[0].limits, declarations[0].task_limits
    return app
