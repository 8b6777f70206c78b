"""HTTP as a correct client of 2025-11-25 speaks it, by hand: each message a POST, streams that are taken up again."""

import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from tests.checks.replicas.failures import Failed, Lost, MayHaveRun, NotRun, TooOld

__all__ = ["Event", "Link", "failure_of"]

ACCEPT = "application/json, text/event-stream"
SILENCE = 20.0
"""Seconds without a byte after which a connection is given up: servers send a comment every 15."""
LINE = 1_048_576


@dataclass(frozen=True)
class Event:
    """One event of a stream; those without data have an id alone, or say when to come back."""

    id: str | None
    data: str
    retry: float | None


def failure_of(status: int, text: str, headers: Mapping[str, str]) -> Failed:
    """What a status that is no answer says."""
    said = f"HTTP {status} {text[:200]}"
    if status == 404:
        return Lost(said)
    if status in (429, 503) and "Retry-After" in headers:
        return NotRun(said)
    if status in (502, 503, 504):
        return MayHaveRun(said)
    return Failed(said)


class Link:
    """The way to a URL, which may change: that of any replica, or of the proxy before them."""

    def __init__(self, http: aiohttp.ClientSession, base_url: str) -> None:
        self._http = http
        self.base_url = base_url
        self.session: str | None = None
        self.history: deque[str] = deque(maxlen=40)
        """What was sent of late, by whom it was served, and with what status: for whoever looks into a failure."""
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=SILENCE, sock_read=SILENCE)

    @asynccontextmanager
    async def asked(
        self, method: str, *, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """The response to one HTTP request, whatever it is. What fails on the way is NotRun or MayHaveRun."""
        sent = {"Accept": ACCEPT, "MCP-Protocol-Version": "2025-11-25", **(headers or {})}
        if self.session is not None:
            sent["Mcp-Session-Id"] = self.session
        what = f"{time.time():.3f} {method} {sent.get('Last-Event-ID', '')} {body}"[:200]
        try:
            async with self._http.request(
                method, f"{self.base_url}/mcp", json=body, headers=sent, timeout=self._timeout
            ) as response:
                self.history.append(
                    f"{what} -> {time.time():.3f} {response.headers.get('X-Served-By', '')} {response.status}"
                )
                yield response
        except aiohttp.ClientConnectorError as error:
            self.history.append(f"{what} -> {error!r}")
            raise NotRun(str(error)) from error
        except (aiohttp.ClientError, TimeoutError) as error:
            self.history.append(f"{what} -> {error!r}")
            raise MayHaveRun(repr(error)) from error

    async def send(self, message: Any, headers: Mapping[str, str] | None = None) -> None:
        """Sends what has no answer. Raises Failed."""
        async with self.asked("POST", body=message, headers=headers) as response:
            if response.status != 202:
                raise failure_of(response.status, await response.text(), response.headers)

    async def resumed(self, last: str) -> AsyncGenerator[Event]:
        """What comes after that event, as long as this response goes on. Raises TooOld, or what `asked` raises."""
        async with self.asked("GET", headers={"Last-Event-ID": last, "Accept": "text/event-stream"}) as response:
            if response.status == 400:
                raise TooOld(await response.text())
            if response.status != 200:
                raise failure_of(response.status, await response.text(), response.headers)
            async for event in read_events(response):
                yield event


async def read_events(response: aiohttp.ClientResponse) -> AsyncIterator[Event]:
    """The events of a response that are whole."""
    fields: dict[str, str] = {}
    async for raw in response.content:
        if not raw.endswith(b"\n"):
            return  # cut off in the middle
        line = raw.decode().rstrip("\r\n")
        if line:
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            fields[name] = f"{fields[name]}\n{value}" if name == "data" and "data" in fields else value
        else:
            fields.pop("", None)  # comments
            if fields:
                retry = fields.get("retry")
                yield Event(fields.get("id"), fields.get("data", ""), None if retry is None else int(retry) / 1_000)
            fields = {}
