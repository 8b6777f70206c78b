"""The server that several are together, for a program that runs them."""

from collections.abc import Collection, Sequence
from typing import Any, Literal

import anyio

from shared import Server
from shared.auth.policy import Rules
from shared.extensions.narrowing import narrowing
from shared.server.declaration import Declaration
from shared.server.dispatch.limits import CallLimits
from shared.server.extension import Extension
from shared.telemetry.supervised import Supervised

from ..joined.gateway import JoinedSettings, gateway

OPENING_SECONDS = 8.0
"""How long clients wait for all of them to be open at first: they ask for lists at once, and many never again. Some
give a server ten seconds to answer."""


async def settled(members: Sequence[Supervised]) -> None:
    """Waits until each of `members` is open or has failed, `OPENING_SECONDS` at most."""
    with anyio.move_on_after(OPENING_SECONDS):
        for member in members:
            await _settled(member)


async def _settled(member: Supervised) -> None:
    moved = anyio.Event()
    unwatch = member.watch(moved.set)
    try:
        if member.running is None and not member.pause:
            await moved.wait()
    finally:
        unwatch()


def kept_apart(rules: Sequence[Rules]) -> list[Extension[Any]]:
    """What the server that several with these rules are together is opened with, so that it has a run for each of
    their principals."""
    names = {name for one in rules for name in one.principals}
    return [narrowing({name: JoinedSettings(principals=name) for name in sorted(names)})] if names else []


def joined_server(
    members: Sequence[Supervised],
    declared: Sequence[Declaration[Any]],
    prefix: Literal["auto", "always"],
    foreign: Collection[str],
) -> Server[Any]:
    """The server that all `members` are together, which have these declarations: a call may cost what the most
    generous of them lets it cost. Those of the names `foreign` are servers of others."""
    app = gateway(members, prefix=prefix, foreign=foreign)
    budgets = [server.budget for server in declared]
    app.budget = CallLimits(
        result_bytes=max(one.result_bytes for one in budgets),
        seconds=max(one.seconds for one in budgets),
        entries=max(one.entries for one in budgets),
    )
    app.limits, app.task_limits = declared[0].limits, declared[0].task_limits
    return app
