"""The options of a server that several processes serve, on one machine or on several, and the stores that the
processes share."""

import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from .messages import missing_extra_message
from .settings.options import option

if TYPE_CHECKING:
    from ..contracts import Stores

StoresFactory = Callable[[str], "Stores"]
"""Returns, for the name of a server, the stores that its replicas share."""


class ReplicaOptions(BaseModel, defer_build=True):
    """Options of a server that is one of several replicas."""

    store: str | None = option(None, "Redis shared by the replicas: redis:, rediss:, unix: or redis+sentinel:", "URL")
    store_password_file: Path | None = option(None, "file with the password of the store", "FILE")
    store_prefix: str = option("mcp:", "prefix of all keys in the store", "TEXT")
    store_lease: float = Field(
        6.0, ge=1, le=300, description="seconds until other replicas take over from a lost one"
    )
    workers: int = Field(
        1, ge=1, le=256, description="number of processes that serve the port; more than one requires --store"
    )


def stores_factory(options: ReplicaOptions) -> StoresFactory | None:
    """Return a factory of stores in the Redis server that the operator has named; None if there is none. Raises
    ValueError if the options can't be used."""
    if options.store is None:
        return None
    if find_spec("redis") is None:
        raise ValueError(f"--store: {missing_extra_message('redis')}")
    key = os.environ.get("MCP_STATE_KEY", "")
    if not key:
        raise ValueError("--store: set MCP_STATE_KEY, a secret shared by all replicas, with which they sign cursors")
    from ..stores.redis.address import client_factory
    from ..stores.redis.stores import Stores

    password, path = None, options.store_password_file
    if path is not None:
        try:
            password = path.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"--store-password-file: {path}: {getattr(error, 'strerror', error)}") from None
        if not password:
            raise ValueError(f"--store-password-file: {path} is empty")
    connect = client_factory(options.store, password)
    return Stores(connect, options.store_prefix, options.store_lease, key.encode()).for_server
