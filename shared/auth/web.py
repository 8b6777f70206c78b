"""Requests to authorization servers: JSON over HTTPS, limited in size. All such requests are sent here. Redirects are
not followed, because the redirecting server would choose where tokens and secrets go, and cookies are not stored.
Proxies and `SSL_CERT_FILE` are taken from the environment.
"""

import json
import ssl
from collections.abc import Mapping, Sequence
from typing import Any

import anyio
import httpx

from ..errors import AuthError
from ..protocol.records import record
from .addresses import AddressFinder, Resolve, resolve

TIMEOUT_SECONDS = 10.0
MAX_ANSWER_BYTES = 512 * 1024  # bytes
_MAX_ADDRESSES = 3
"""Maximum number of addresses of a host that are tried."""


class WebError(AuthError):
    """Raised if an authorization server sent an answer that can't be used."""


class Unreachable(WebError):
    """Raised if the server could not be reached or did not answer in time."""


@record
class Answer:
    """The answer to a request."""

    status: int
    headers: Mapping[str, str]
    """The headers, by name in lower case."""
    document: Any
    """The JSON value in the body; None if the body is not JSON."""


class Web:
    """Sends requests to authorization servers, and to the URLs in their metadata. It keeps no connections open, so
    that it need not be closed."""

    def __init__(self, *, timeout: float = TIMEOUT_SECONDS, resolve: Resolve = resolve) -> None:
        self._verify: ssl.SSLContext | None = None
        self._timeout = timeout
        self._addresses = AddressFinder(resolve)

    async def get_json(self, url: str, *, referrer: str | None = None) -> Answer:
        """Return the answer to a GET request for `url`, whatever its status. `referrer` is the URL of the document
        that names `url`; None if an operator or a user does. Raises `WebError` and `ForbiddenAddress`, whose messages
        contain no secret."""
        return await self._request("GET", url, referrer)

    async def post_form(
        self,
        url: str,
        fields: Mapping[str, str | Sequence[str]],
        *,
        referrer: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a form by POST, and return the answer. A field with several values is sent several times. The
        parameters and errors are otherwise those of `get_json`."""
        data = {name: value if isinstance(value, str) else list(value) for name, value in fields.items()}
        return await self._request("POST", url, referrer, data=data, headers=headers)

    async def post_json(self, url: str, document: Any, *, referrer: str | None = None) -> Answer:
        """Send `document` as JSON by POST, and return the answer. The rest is as in `get_json`."""
        return await self._request("POST", url, referrer, json=document)

    async def _request(
        self, method: str, url: str, referrer: str | None, *, headers: Mapping[str, str] | None = None, **body: Any
    ) -> Answer:
        # A small compressed answer may expand to a huge one, so compression is not accepted.
        all_headers = {"accept": "application/json", "accept-encoding": "identity", **(headers or {})}
        try:
            request = httpx.Request(method, url, headers=all_headers, **body)
            host = request.url.host
        except (ValueError, httpx.InvalidURL):  # a lone surrogate in a value raises UnicodeError, a ValueError
            raise WebError("a URL or a request body has characters that can't be sent") from None
        try:
            with anyio.fail_after(self._timeout):
                addresses = await self._addresses.find(str(request.url), referrer)
                return await self._send(request, addresses)
        except (OSError, ValueError, httpx.HTTPError, httpx.InvalidURL) as error:  # TimeoutError is an OSError
            raise Unreachable(f"{host} can't be reached: {type(error).__name__}") from error

    async def _send(self, request: httpx.Request, addresses: Sequence[str]) -> Answer:
        if self._verify is None and request.url.scheme == "https":
            # Done in a thread, because reading the certificates of all authorities takes a while.
            self._verify = await anyio.to_thread.run_sync(httpx.create_ssl_context)
        verify = self._verify if self._verify is not None else False  # http needs none
        # If addresses were checked, connect to them directly, not over a proxy of the environment, which would
        # resolve the name again.
        async with httpx.AsyncClient(verify=verify, timeout=self._timeout, trust_env=not addresses) as client:
            if not addresses:
                return await _read(client, request)
            # A host may have an IPv6 address that can't be reached from here, so further addresses are tried. The
            # last error is reported.
            for address in addresses[: _MAX_ADDRESSES - 1]:
                if address == addresses[-1]:
                    break
                try:
                    return await _read(client, _pin(request, address))
                except (httpx.ConnectError, httpx.ConnectTimeout):
                    continue
            return await _read(client, _pin(request, addresses[-1]))


def _pin(request: httpx.Request, address: str) -> httpx.Request:
    """Return the same request to `address`, which was checked: the name may resolve to another one the next time."""
    extensions = {**request.extensions, "sni_hostname": request.url.host}
    url = request.url.copy_with(host=address)
    # The Host header and the name for TLS stay those of the host.
    return httpx.Request(request.method, url, headers=request.headers, content=request.content, extensions=extensions)


async def _read(client: httpx.AsyncClient, request: httpx.Request) -> Answer:
    answer = await client.send(request, stream=True, follow_redirects=False)
    try:
        # The size is checked while reading, since the length in the header may be wrong or missing.
        body = bytearray()
        if answer.headers.get("content-encoding", "identity") != "identity":
            raise WebError(f"{request.headers['host']} sent a compressed answer, which was not requested")
        async for chunk in answer.aiter_bytes():
            body += chunk
            if len(body) > MAX_ANSWER_BYTES:
                raise WebError(f"{request.headers['host']} returned more than {MAX_ANSWER_BYTES} bytes")
    finally:
        await answer.aclose()
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    return Answer(answer.status_code, {name.lower(): value for name, value in answer.headers.items()}, document)
