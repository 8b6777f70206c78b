"""Credentials for the requests that a program makes by itself, with httpx."""

from collections.abc import AsyncGenerator, Generator

import httpx

from ...contracts import Credentials

MAX_SENT = 6
"""How often a request is sent at most."""


class HttpxAuth(httpx.Auth):
    """Any `Credentials`, such as `OAuth`, as httpx has it: `httpx.AsyncClient(auth=HttpxAuth(credentials))`."""

    requires_request_body = True

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        """One request, as often as it takes. Raises AuthError where what the server wants can't be had."""
        url, given = str(request.url), httpx.Headers(request.headers)
        for _ in range(MAX_SENT):
            own = await self._credentials.headers(request.method, url)
            request.headers = httpx.Headers({**given, **own})  # none that belong to a token of before
            response = yield request
            headers = {name: response.headers[name] for name in response.headers}
            # Where httpx follows redirects, the answer may be somebody else's.
            asked = str(response.request.url)
            if not await self._credentials.answered(request.method, asked, response.status_code, headers):
                return

    def sync_auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Raises RuntimeError: obtaining tokens waits for others, which a client without `await` can't."""
        raise RuntimeError("these credentials are for httpx.AsyncClient")
        yield request
