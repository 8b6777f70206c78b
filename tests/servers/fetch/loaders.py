"""Loaders with the real client, for which every name resolves to this machine."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from servers.fetch.errors import FetchError
from servers.fetch.load.loader import Loader, LoadRules
from servers.fetch.network.address_policy import Policy, Rules
from servers.fetch.network.client import ClientOptions, open_client

AGENT = "tester/1.0 (tests)"


class Here:
    """A resolver that resolves every name to this machine."""

    async def resolve(self, host: str) -> Sequence[str]:
        return ["127.0.0.1"]


@asynccontextmanager
async def opened_loader(
    allowed: Sequence[str] = ("127.0.0.1:*",), *, ca_file: Path | None = None, **rules: Any
) -> AsyncIterator[Loader]:
    """A loader that may reach `allowed` on this machine."""
    policy = Policy(Rules(allow_private=allowed))
    rules = {"user_agent": AGENT, "timeout": 10} | rules
    async with open_client(ClientOptions(ca_file=ca_file), policy, Here()) as client:
        yield Loader(client, policy, LoadRules(**rules))


async def refused(loader: Loader, url: str, **options: Any) -> FetchError:
    """Returns the error that loading `url` raises."""
    with pytest.raises(FetchError) as caught:
        await loader.load(url, **options)
    return caught.value
