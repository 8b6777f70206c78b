"""The server that joins several servers, for a program that runs them."""

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
"""Seconds that clients wait at startup for all of them to be open, since clients request lists at once, and many
never again. Some allow a server ten seconds to answer."""


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
    """Return the extensions for the server that joins several with these rules, so that it has a separate run for
    each of their principals."""
    names = {name for server_rules in rules for name in server_rules.principals}
    return [narrowing({name: JoinedSettings(principals=name) for name in sorted(names)})] if names else []


def joined_server(
    members: Sequence[SupervisedServer],
    declared: Sequence[Declaration[Any]],
    prefix: Literal["auto", "always"],
    foreign: Collection[str],
) -> Server[Any]:
    """Return the server that joins all `members`, which have these declarations; its limits for one call are the most
    generous of theirs. `foreign` are the names of the foreign ones."""
    app = gateway(members, prefix=prefix, foreign=foreign)
    budgets = [server.budget for server in declared]
    app.budget = CallLimits(
        result_bytes=max(budget.result_bytes for budget in budgets),
        seconds=max(budget.seconds for budget in budgets),
        entries=max(budget.entries for budget in budgets),
    )
    app.limits, app.task_limits = declared[0].limits, declared[0].task_limits
    return app
