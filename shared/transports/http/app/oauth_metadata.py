"""The servers of a listener as OAuth protected resources: their URIs, and the metadata with the issuers of tokens.

Metadata is public: clients without a token request it, and so do pages of any origin. Each path at which a server
answers has its own metadata, because clients compare the `resource` with the URL that they use (RFC 9728, section
3.3).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ....protocol.http.protected import WELL_KNOWN, ProtectedResource
from ....protocol.http.rules import Headers
from .base_url import BaseUrl
from .mount import Mount

_HEADERS = {"access-control-allow-origin": "*", "cache-control": "public, max-age=300"}
_JOINED_PATH = "/mcp"
"""The path of a gateway's joined server, with the features of all its servers; its metadata is also at the root."""


@dataclass(frozen=True, slots=True)
class Issuers:
    """The accepted issuers of tokens."""

    urls: tuple[str, ...]
    public_url: str | None = None
    """The URL of the listener for clients; None to use the host that their requests name."""
    proof_algorithms: tuple[str, ...] = ()
    """The accepted signature algorithms of proofs of possession (RFC 9449)."""
    needs_proof: bool = False
    """True if all tokens must be bound to a key."""


class OAuthMetadata:
    """The protected resource metadata of the mounted servers."""

    def __init__(self, mounts: Sequence[Mount], issuers: Issuers) -> None:
        self._issuers = issuers
        self._mounts: Mapping[str, Mount] = {path: mount for mount in mounts for path in mount.paths}
        only_mount = mounts[0] if len(mounts) == 1 else None
        self._root_mount = only_mount or next((mount for mount in mounts if mount.path == _JOINED_PATH), None)
        self._base = BaseUrl(mounts, issuers.public_url)
        self._prefix = self._base.prefix
        # Some proxies forward their prefix, others remove it: the metadata of a path may be requested at either path.
        self._routes = {
            WELL_KNOWN + prefix + path: (path, mount)
            for path, mount in self._mounts.items()
            for prefix in ("", self._prefix)
        }
        if self._root_mount is not None:
            self._routes[WELL_KNOWN] = self._root_mount.path, self._root_mount
        self.paths = frozenset(self._routes) | {WELL_KNOWN}
        """The paths of the metadata."""
        self._cached_resource = lru_cache(1_024)(self._resource)

    def resource_at(self, path: str, headers: Headers) -> ProtectedResource:
        """Return the resource of a request at `path`. At one without a server, tokens for any server are valid."""
        return self._cached_resource(path, self._base.for_host(headers.get("host")))

    def routes(self) -> list[Route]:
        """Return the routes of the metadata."""
        return [Route(path, partial(self._answer, *served), methods=["GET"]) for path, served in self._routes.items()]

    async def _answer(self, path: str, mount: Mount, request: Request) -> Response:
        """Answer with the metadata document of a resource (RFC 9728, section 2)."""
        base = self._base.for_host(request.headers.get("host"))
        issuers = self._issuers
        supported, _ = mount.scopes()
        document: dict[str, Any] = {
            "resource": base + path,
            "authorization_servers": list(issuers.urls),
            "bearer_methods_supported": ["header"],
            "resource_name": mount.server.implementation.title or mount.name,
        }
        if supported:
            document["scopes_supported"] = list(supported)
        if issuers.proof_algorithms:
            document["dpop_signing_alg_values_supported"] = list(issuers.proof_algorithms)
        if issuers.needs_proof:
            document["dpop_bound_access_tokens_required"] = True
        return JSONResponse(document, headers=_HEADERS)

    def _resource(self, path: str, base: str) -> ProtectedResource:
        mount = self._mounts.get(path)
        if mount is None:
            audiences = frozenset(base + served_path for served_path in self._mounts)
            return ProtectedResource(base, base + WELL_KNOWN, audiences, tuple)
        # HTTP+SSE has two more paths, and a client uses one token for all paths of a server.
        audiences = frozenset(base + served_path for served_path in mount.paths)
        metadata_url = base.removesuffix(self._prefix) + WELL_KNOWN + self._prefix + path
        return ProtectedResource(base + path, metadata_url, audiences, lambda: mount.scopes()[1])
