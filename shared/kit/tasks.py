"""Tasks that live no longer than the block they serve."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup

__all__ = ["background"]


@asynccontextmanager
async def background() -> AsyncIterator[TaskGroup]:
    """A task group whose tasks are cancelled at the end of the block.

    A single error leaves as it is: whoever uses a client expects `PeerError` and not a group that holds one.
    """
    try:
        async with anyio.create_task_group() as tasks:
            try:
                yield tasks
            finally:
                tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        if len(group.exceptions) > 1:
            raise
        only = group.exceptions[0]
        raise only from only.__cause__
