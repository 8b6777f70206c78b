"""The login of a person in the system's browser, which is redirected to a port of this machine (RFC 8252)."""

import asyncio
import secrets
import socket
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Self
from urllib.parse import parse_qsl, urlsplit

import anyio
from aiohttp import web
from anyio import to_thread

from ...errors import AuthError

LOGIN_SECONDS = 300.0
"""Seconds that a person has to log in."""
MAX_FIELDS = 50
"""Maximum number of fields in the query of the redirect."""
_HEADERS = {
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
_PAGE = "<!doctype html><meta charset=utf-8><title>{0}</title><p>{0}</p>"
_DONE_PAGE = _PAGE.format("The response has arrived. You can close this page and return to the program.")
_REFUSED_PAGE = _PAGE.format("This is not the response that the program expects.")


class Loopback:
    """A `Redirect` to this machine, whose port is reserved during the block. `show_url` receives the URL of the login
    page, for users whose browser does not open; if `opens_browser` is false, no browser is opened. `path` and `port`
    are given if this redirect URI is registered with the issuer; otherwise both are chosen anew."""

    def __init__(
        self, show_url: Callable[[str], None], *, opens_browser: bool = True, path: str | None = None, port: int = 0
    ) -> None:
        self._show_url = show_url
        self._opens_browser = opens_browser
        self._path = path or f"/{secrets.token_urlsafe(16)}"
        self._port = port
        self._socket: socket.socket | None = None
        self._host = ""

    def __enter__(self) -> Self:
        """Reserve the port. Raises AuthError if it is taken."""
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            # The address and not `localhost`, which may resolve to another address (RFC 8252, section 8.3). The
            # socket is only bound, which reserves the port; it listens once a login begins.
            self._socket.bind(("127.0.0.1", self._port))
        except OSError as error:
            self._socket.close()
            raise AuthError(f"can't listen on 127.0.0.1:{self._port}: {error.strerror}") from None
        self._host = f"127.0.0.1:{self._socket.getsockname()[1]}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._socket is not None:
            self._socket.close()

    @property
    def redirect_uris(self) -> Sequence[str]:
        """The URI to which the browser is redirected."""
        return (f"http://{self._host}{self._path}",)

    async def open(self, url: str) -> Mapping[str, str]:
        """Open the login page `url` in the browser, and wait for the redirect that answers it. Raises AuthError."""
        if self._socket is None or urlsplit(url).scheme not in ("http", "https"):
            raise AuthError("no login page was opened")
        state = dict(parse_qsl(urlsplit(url).query)).get("state")
        answer: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()

        async def serve(request: web.BaseRequest) -> web.Response:
            parameters = self._read_redirect(request, state)
            if parameters is None or answer.done():
                return _response(_REFUSED_PAGE, 400)
            answer.set_result(parameters)
            return _response(_DONE_PAGE, 200)

        runner = web.ServerRunner(web.Server(serve, access_log=None), shutdown_timeout=1.0)
        await runner.setup()
        try:
            await web.SockSite(runner, self._socket.dup()).start()
            return await self._wait_for_redirect(url, answer)
        finally:
            with anyio.CancelScope(shield=True):
                await runner.cleanup()

    async def _wait_for_redirect(self, url: str, answer: "asyncio.Future[dict[str, str]]") -> Mapping[str, str]:
        self._show_url(url)
        with anyio.move_on_after(LOGIN_SECONDS):
            async with anyio.create_task_group() as tasks:
                if self._opens_browser:
                    tasks.start_soon(_open_browser, url)
                parameters = await answer
                tasks.cancel_scope.cancel()
                return parameters
        raise AuthError(f"no one logged in within {LOGIN_SECONDS:g} s")

    def _read_redirect(self, request: web.BaseRequest, state: str | None) -> dict[str, str] | None:
        """Return the parameters of the redirect; None if the request does not belong to this login."""
        # Other web pages can make the browser send requests here, under other host names.
        if request.method != "GET" or request.path != self._path or request.host != self._host:
            return None
        try:
            pairs = parse_qsl(request.query_string, keep_blank_values=True, max_num_fields=MAX_FIELDS)
        except ValueError:
            return None
        parameters = dict(pairs)
        return parameters if len(parameters) == len(pairs) and parameters.get("state") == state else None


async def _open_browser(url: str) -> None:
    # Abandoned on cancellation, because a browser in the terminal runs until the user closes it.
    await to_thread.run_sync(webbrowser.open, url, abandon_on_cancel=True)


def _response(page: str, status: int) -> web.Response:
    response = web.Response(text=page, status=status, content_type="text/html", headers=_HEADERS)
    # Otherwise the browser would keep the connection open, and the server would wait for it at shutdown.
    response.force_close()
    return response
