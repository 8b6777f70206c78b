"""The page at `/`: what runs, how it is, and how to connect to it. No script, nothing from elsewhere."""

import asyncio
import base64
import json
from collections.abc import Sequence
from hashlib import sha256
from html import escape

from starlette.requests import Request
from starlette.responses import Response

from shared.ops.readiness import State
from shared.protocol.http.rules import Refusal
from shared.transports.http.mount import Mount
from shared.transports.http.protection import Issuers

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:48rem;margin:2rem auto;padding:0 1rem}"
    "td,th{text-align:left;padding:.25rem 1rem .25rem 0;vertical-align:top}"
    "pre{background:#8882;padding:1rem;overflow:auto}"
    ":root{color-scheme:light dark}"
)
_DIGEST = base64.b64encode(sha256(_STYLE.encode()).digest()).decode()
_HEADERS = {
    "content-security-policy": f"default-src 'none'; style-src 'sha256-{_DIGEST}'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}

_MOST = 500
"""Characters of what a server says of itself."""


class Page:
    """Makes the page for each request."""

    def __init__(self, mounts: Sequence[Mount], *, asks_for_token: bool, issuers: Issuers | None = None) -> None:
        self._mounts = mounts
        self._asks_for_token = asks_for_token
        self._issuers = issuers

    async def __call__(self, request: Request, refusal: Refusal | None) -> Response:
        """The page; for whoever may not use the servers, that a token is needed and nothing else."""
        if refusal is not None:
            locked = _LOCKED if self._issuers is None else _log_in(self._issuers)
            return _page(locked, refusal.status, dict(refusal.headers))
        states = await asyncio.gather(*(mount.state() for mount in self._mounts))
        # A proxy in front of it may speak TLS, and says so by this header.
        scheme = "https" if request.headers.get("x-forwarded-proto") == "https" else "http"
        base = (self._issuers and self._issuers.public_url) or f"{scheme}://{request.headers.get('host', '')}"
        rows = "".join(_row(mount, base, state) for mount, state in zip(self._mounts, states, strict=True))
        return _page(
            f"<table><tr><th>Server</th><th>URL</th><th>State</th></tr>{rows}</table>"
            "<h2>How to connect</h2>"
            "<p>Give a host the URL of a server (transport: Streamable HTTP). Many take it as JSON:</p>"
            f"<pre>{escape(self._snippet(base))}</pre>"
            f"{'' if self._issuers is None else _log_in(self._issuers)}"
            "<p>For whoever watches over it: <code>/healthz</code>, <code>/readyz</code>, <code>/metrics</code>.</p>"
        )

    def _snippet(self, base: str) -> str:
        # Whoever logs in by an issuer needs none.
        needs_token = self._asks_for_token and self._issuers is None
        token = {"headers": {"Authorization": "Bearer YOUR_TOKEN"}} if needs_token else {}
        servers = {mount.name: {"type": "http", "url": base + mount.path, **token} for mount in self._mounts}
        return json.dumps({"mcpServers": servers}, indent=2)


_LOCKED = (
    "<p>A token is needed, as in the header <code>Authorization: Bearer YOUR_TOKEN</code>; "
    "whoever runs this has it.</p>"
)


def _log_in(issuers: Issuers) -> str:
    named = ", ".join(f"<code>{escape(url)}</code>" for url in issuers.urls)
    return (
        f"<p>Tokens are issued by {named}: hosts log in there by themselves, and so does "
        "<code>mcp-server-bundle login URL</code>.</p>"
    )


def _row(mount: Mount, base: str, state: State) -> str:
    # One that stands for another says what that is, as long as it knows.
    implementation = (mount.server if mount.running is None else mount.running.identity).implementation
    text = state.phase.value if state.reason is None else f"{state.phase.value}: {state.reason}"
    cells = [
        f"<b>{escape((implementation.title or mount.name)[:_MOST])}</b> {escape(implementation.version[:_MOST])}"
        f"<br>{escape((implementation.description or '')[:_MOST])}",
        f"<code>{escape(base + mount.path)}</code>",
        escape(text),
    ]
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _page(body: str, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    html = (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>MCP servers</title>'
        f"<style>{_STYLE}</style><h1>MCP servers</h1>{body}</html>"
    )
    return Response(html, status, {**_HEADERS, **(headers or {})}, "text/html")
