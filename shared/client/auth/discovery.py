"""Who issues tokens for a server, found out by what the server and the issuer say of themselves.

(2026-07-28, Authorization, Authorization Server Discovery; RFC 9728, RFC 8414. A server that says nothing is taken
for one of the first version with authorization, whose own origin issues tokens.)
"""

from collections.abc import Collection
from urllib.parse import urlsplit

from ...auth.issuers import find_metadata, first_metadata
from ...auth.metadata import (
    IssuerMetadata,
    ResourceMetadata,
    issuer_metadata_urls,
    read_resource_metadata,
    resource_metadata_urls,
)
from ...auth.web import Web
from ...errors import AuthError
from ...protocol.records import record
from ...text import escape
from .challenges import Challenge

_OFFLINE = "offline_access"
"""Asks for a token by which others are had later; not every authorization server knows it."""


@record
class Found:
    """Who issues tokens for a server."""

    issuer: IssuerMetadata
    resource: str | None
    """How the server names itself, exactly; None where it does not, and is not named to its issuer either."""
    resource_metadata: ResourceMetadata | None

    @property
    def wants_proofs(self) -> bool:
        """Whether the server takes tokens that are bound to a key."""
        told = self.resource_metadata
        return told is not None and bool(
            told.dpop_bound_access_tokens_required or told.dpop_signing_alg_values_supported
        )

    def choose_scopes(self, challenged: Collection[str], before: Collection[str], *, lasting: bool) -> frozenset[str]:
        """The scopes to ask for: what the server asks for, else all that it supports, with what was asked for
        `before`, since a token for one thing must not lose another. None at all where nobody says anything. `lasting`
        where a person would have to log in again. (2026-07-28, Authorization, Scope Selection Strategy.)"""
        told = self.resource_metadata
        supported = (told.scopes_supported if told is not None else None) or ()
        chosen = frozenset(challenged or supported) | frozenset(before)
        known = self.issuer.scopes_supported or ()
        # Some issuers refuse a whole request for one scope that they do not know.
        if _OFFLINE in chosen and _OFFLINE not in known:
            chosen -= {_OFFLINE}
        if lasting and _OFFLINE in known:
            chosen |= {_OFFLINE}
        return chosen


async def discover(web: Web, url: str, challenge: Challenge | None, known: str | None) -> Found:
    """Who issues tokens for the server at `url`, which has answered with `challenge`. Where several do it is `known`,
    the one that knows the client, or the first. Raises `AuthError`."""
    told = await _resource(web, url, challenge)
    if told is None:
        return Found(await _origin_issuer(web, url), None, None)
    if not told.authorization_servers:
        raise AuthError("the server does not say who issues tokens for it")
    # Which of several is left to the client (RFC 9728, section 7.6).
    issuer = known if known in told.authorization_servers else told.authorization_servers[0]
    if known is not None and issuer != known:
        raise AuthError(f"the credentials are for the issuer {escape(known)}, which the server no longer names")
    return Found(await find_metadata(web, issuer, near=url), told.resource, told)


async def _resource(web: Web, url: str, challenge: Challenge | None) -> ResourceMetadata | None:
    named = challenge.parameters.get("resource_metadata") if challenge else None
    urls = ((named,) if named else ()) + resource_metadata_urls(url)
    for place in dict.fromkeys(urls):
        answer = await web.get_json(place, near=url)
        # Not taken for a server without metadata, whose own origin would then be asked for tokens.
        if answer.status >= 500:
            raise AuthError(f"the server does not say who issues tokens for it: HTTP {answer.status}")
        if answer.status == 200 and isinstance(answer.document, dict):
            return read_resource_metadata(answer.document, url)
    return None


async def _origin_issuer(web: Web, url: str) -> IssuerMetadata:
    parts = urlsplit(url)
    origin = f"{parts.scheme}://{parts.netloc}"
    # 2025-03-26, the first version with authorization: the server's origin is the issuer, with these paths where it
    # has no metadata.
    found = await first_metadata(web, issuer_metadata_urls(origin)[:1], origin, url)
    if found is not None:
        return found
    return IssuerMetadata(
        issuer=origin,
        authorization_endpoint=f"{origin}/authorize",
        token_endpoint=f"{origin}/token",
        registration_endpoint=f"{origin}/register",
        code_challenge_methods_supported=["S256"],
    )
