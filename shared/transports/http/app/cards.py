"""Server cards, which describe a server before a client connects, and their catalog (experimental; SEP-2127,
modelcontextprotocol/experimental-ext-server-card).

Cards are public, like metadata: they describe a server and its URL, but never its features or its users. They
establish no trust, and the server's own description on a connection takes precedence.
"""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ....protocol.versions import VERSIONS
from .base_url import BaseUrl
from .mount import Mount

CATALOG = "/.well-known/ai-catalog.json"
_SCHEMA = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"
_CARD_TYPE, _CATALOG_TYPE = "application/mcp-server-card+json", "application/ai-catalog+json"
_HEADERS = {
    "access-control-allow-origin": "*",
    "access-control-allow-methods": "GET",
    "access-control-allow-headers": "Content-Type, If-None-Match",
    "access-control-expose-headers": "ETag",
    "cache-control": "public, max-age=3600",
    "x-content-type-options": "nosniff",
}
_MAX_TEXT_LENGTH = 100
"""The maximum length of a description or a title, in characters."""
_TOKEN_HEADER = {
    "name": "Authorization",
    "description": "'Bearer ' and a token from the operator of the server",
    "isRequired": True,
    "isSecret": True,
}
_DISALLOWED = re.compile(r"[^A-Za-z0-9._-]")


class Cards:
    """The cards of the mounted servers, and the catalog of all of them."""

    def __init__(self, mounts: Sequence[Mount], public_url: str | None, *, needs_token: bool) -> None:
        """`needs_token` is true if every client needs a token from the operator."""
        self._mounts: Mapping[str, Mount] = {f"{mount.path}/server-card": mount for mount in mounts}
        self._base = BaseUrl(mounts, public_url)
        self._token_header = {"headers": [_TOKEN_HEADER]} if needs_token else {}
        self._paths = {
            public_path: path for path in (CATALOG, *self._mounts) for public_path in (path, self._base.prefix + path)
        }
        self.paths = frozenset(self._paths)
        """The paths of cards and catalog, both with and without the proxy's prefix: some proxies forward it, others
        remove it."""
        self._make_document = lru_cache(64)(_Document)

    def routes(self) -> list[Route]:
        """Return the routes of the cards and the catalog."""
        return [
            Route(public_path, partial(self._answer, path), methods=["GET"])
            for public_path, path in self._paths.items()
        ]

    async def _answer(self, path: str, request: Request) -> Response:
        base, mount = self._base.for_host(request.headers.get("host")), self._mounts.get(path)
        if mount is None:
            domain = _domain(base)
            entries = [
                {
                    "identifier": f"urn:air:{domain}:mcp:{_name(mount)}",
                    "displayName": _title(mount),
                    "type": _CARD_TYPE,
                    "url": base + path,
                }
                for path, mount in self._mounts.items()
            ]
            answer = self._make_document(json.dumps({"specVersion": "1.0", "entries": entries}), _CATALOG_TYPE)
        else:
            answer = self._make_document(json.dumps(self._card(base, mount)), _CARD_TYPE)
        return answer.response(request)

    def _card(self, base: str, mount: Mount) -> dict[str, Any]:
        implementation = mount.implementation
        description = implementation.to_wire()
        remote = {
            "type": "streamable-http",
            "url": base + mount.path,
            "supportedProtocolVersions": [version.date for version in VERSIONS],
            **self._token_header,
        }
        return {
            "$schema": _SCHEMA,
            "name": f"{'.'.join(reversed(_domain(base).split('.')))}/{_name(mount)}",
            "version": implementation.version,
            "description": _shorten(implementation.description or _title(mount)),
            "title": _title(mount),
            **{field: description[field] for field in ("websiteUrl", "icons") if description.get(field)},
            "remotes": [remote],
        }


class _Document:
    """A card or the catalog with its HTTP headers. A changed text is a new document."""

    def __init__(self, text: str, media_type: str) -> None:
        self._body = text.encode()
        self._etag = f'"{base64.urlsafe_b64encode(sha256(self._body).digest()[:12]).decode()}"'
        self._headers = {**_HEADERS, "etag": self._etag, "content-type": media_type}

    def response(self, request: Request) -> Response:
        """Return the document; 304 if the client already holds it (RFC 9110, section 13.1.2)."""
        client_tags = {tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")}
        if not client_tags.isdisjoint({"*", self._etag}):
            return Response(None, 304, self._headers)
        return Response(self._body, 200, self._headers)


def _domain(base: str) -> str:
    """Return the domain of the servers; "localhost" for an IP address or a name without a dot, which nobody owns."""
    host = urlsplit(base).hostname or ""
    is_domain = re.fullmatch(r"[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z][a-z0-9-]*", host) is not None
    return host if is_domain else "localhost"


def _name(mount: Mount) -> str:
    return _DISALLOWED.sub("-", mount.name) or "server"


def _title(mount: Mount) -> str:
    return _shorten(mount.implementation.title or mount.name)


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_TEXT_LENGTH else f"{text[: _MAX_TEXT_LENGTH - 1].rstrip()}…"
