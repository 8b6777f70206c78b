"""Credentials for a program's own requests with httpx."""

from collections.abc import AsyncGenerator, Generator

import httpx

from ...contracts import Credentials

MAX_ATTEMPTS = 6
"""Maximum number of times that one request is sent, for the reasons in `transports/http/client/authorized.py`."""


class HttpxAuth(httpx.Auth):
    """An adapter from any `Credentials`, such as `OAuth`, to httpx:
    `httpx.AsyncClient(auth=HttpxAuth(credentials))`."""

    requires_request_body = True

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        """Send one request as often as necessary. Raises AuthError if what the server requires can't be obtained."""
        url, original = str(request.url), httpx.Headers(request.headers)
        for _ in range(MAX_ATTEMPTS):
            credentials = await self._credentials.headers(request.method, url)
            request.headers = httpx.Headers({**original, **credentials})  # replaces the headers of an earlier attempt
            response = yield request
            headers = {name: response.headers[name] for name in response.headers}
            # If httpx follows redirects, the response may come from another server.
            answering_url = str(response.request.url)
            if not await self._credentials.answered(request.method, answering_url, response.status_code, headers):
                return

    def sync_auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Raise RuntimeError: obtaining a token may require waiting, which a client without `await` can't do."""
        raise RuntimeError("these credentials work only with httpx.AsyncClient")
        yield request  # makes this function a generator, as httpx requires
