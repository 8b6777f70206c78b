"""What orchestrators ask, as they ask it."""

import time

import httpx

from tests.wire import PATIENCE


def probe(url: str) -> int:
    """The status. A kubelet names the address of the pod as its host."""
    return httpx.get(url, headers={"host": "10.1.2.3:8000"}, trust_env=False, timeout=PATIENCE).status_code


def until_ready(url: str) -> None:
    """Waits until `url` answers that all servers are ready, which is not at once."""
    deadline = time.monotonic() + PATIENCE
    while (status := probe(url)) != 200:
        assert status == 503
        assert time.monotonic() < deadline, "they do not get ready"
