"""Who issues tokens for a server, found out by what the server and the issuer say of themselves.

(2026-07-28, Authorization, Authorization Server Discovery; RFC 9728, RFC 8414. A server that says nothing is taken
for one of the first version with authorization, whose own origin issues tokens.)
"""

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

__all__ = ["Found", "discover"]


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


async def discover(web: Web, url: str, challenge: Challenge | None, known: str | None) -> Found:
    """Who issues tokens for the server at `url`, which has answered with `challenge`. Where several do it is `known`,
    the one that knows the client, or the first. Raises `AuthError`."""
    told = await _resource(web, url, challenge)
    if told is None:
        return Found(await _origin_issuer(web, url), None, None)
    if not told.authorization_servers:
        raise AuthError("the server does not say who issues tokens for it")
    issuer = known if known in told.authorization_servers else told.authorization_servers[0]
    if known is not None and issuer != known:
        raise AuthError(f"the credentials are for the issuer {escape(known)}, which the server no longer names")
    return Found(await find_metadata(web, issuer, near=url), told.resource, told)


async def _resource(web: Web, url: str, challenge: Challenge | None) -> ResourceMetadata | None:
    named = challenge.parameters.get("resource_metadata") if challenge else None
    urls = ((named,) if named else ()) + resource_metadata_urls(url)
    for place in dict.fromkeys(urls):
        answer = await web.get_json(place, near=url)
        if answer.status >= 500:
            raise AuthError(f"the server does not say who issues tokens for it: HTTP {answer.status}")
        if answer.status == 200 and isinstance(answer.document, dict):
            return read_resource_metadata(answer.document, url)
    return None


async def _origin_issuer(web: Web, url: str) -> IssuerMetadata:
    parts = urlsplit(url)
    origin = f"{parts.scheme}://{parts.netloc}"
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
