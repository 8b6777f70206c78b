"""The discovery of the issuer of tokens for a server, from the metadata of the server and of the issuer.

(2026-07-28, Authorization, Authorization Server Discovery; RFC 9728, RFC 8414. A server without metadata is treated
like a server of 2025-03-26, the first version with authorization, whose own origin issues the tokens.)
"""

from collections.abc import Collection
from urllib.parse import urlsplit

from ...auth.issuers import find_metadata, first_metadata
from ...auth.metadata import (
    IssuerMetadata,
    ResourceMetadata,
    is_same_issuer,
    issuer_metadata_urls,
    read_resource_metadata,
    resource_metadata_urls,
)
from ...auth.web import Web
from ...errors import AuthError
from ...protocol.records import record
from ...text import escape
from .challenges import Challenge

_OFFLINE_ACCESS = "offline_access"
"""The scope that requests a refresh token; not every authorization server knows it."""


@record
class Discovery:
    """The issuer of the tokens for a server, and the metadata of the server."""

    issuer: IssuerMetadata
    resource: str | None
    """The server's resource identifier, exactly as in its metadata; None if it has no metadata. Then no resource is
    sent to the issuer."""
    resource_metadata: ResourceMetadata | None

    @property
    def accepts_proofs(self) -> bool:
        """True if the server accepts tokens that are bound to a key."""
        metadata = self.resource_metadata
        return metadata is not None and bool(
            metadata.dpop_bound_access_tokens_required or metadata.dpop_signing_alg_values_supported
        )

    def choose_scopes(
        self, required: Collection[str], previous: Collection[str], *, needs_person: bool
    ) -> frozenset[str]:
        """Return the scopes to request: those that the server requires or, if it requires none, all that it supports.
        The `previous` ones are always added, so that the new token still serves their purposes. The result may be
        empty. `needs_person` is true if a person would have to log in again: then a refresh token is requested too.
        (2026-07-28, Authorization, Scope Selection Strategy.)"""
        metadata = self.resource_metadata
        supported = (metadata.scopes_supported if metadata is not None else None) or ()
        scopes = frozenset(required or supported) | frozenset(previous)
        issuer_scopes = self.issuer.scopes_supported or ()
        # Some issuers refuse a request because of one unknown scope.
        if _OFFLINE_ACCESS in scopes and _OFFLINE_ACCESS not in issuer_scopes:
            scopes -= {_OFFLINE_ACCESS}
        if needs_person and _OFFLINE_ACCESS in issuer_scopes:
            scopes |= {_OFFLINE_ACCESS}
        return scopes


async def discover(web: Web, url: str, challenge: Challenge | None, bound_issuer: str | None) -> Discovery:
    """Return the issuer of the tokens for the server at `url`, which has answered with `challenge`. If there are
    several issuers, the result is `bound_issuer`, the one to which the client's credentials are bound, or if that is
    None, the first. Raises `AuthError`, for example if the server no longer names `bound_issuer`."""
    metadata = await _find_resource_metadata(web, url, challenge)
    if metadata is None:
        return Discovery(await _find_origin_issuer(web, url), None, None)
    if not metadata.authorization_servers:
        raise AuthError("the server does not name a token issuer")
    # The client may choose any of the issuers (RFC 9728, section 7.6).
    issuers = [name for name in metadata.authorization_servers if is_same_issuer(name, bound_issuer or name)]
    if not issuers:
        raise AuthError(
            f"the credentials are for the issuer {escape(bound_issuer or '')}, which the server no longer names"
        )
    return Discovery(await find_metadata(web, issuers[0], referrer=url), metadata.resource, metadata)


async def _find_resource_metadata(web: Web, url: str, challenge: Challenge | None) -> ResourceMetadata | None:
    metadata_url_in_challenge = challenge.parameters.get("resource_metadata") if challenge else None
    urls = ((metadata_url_in_challenge,) if metadata_url_in_challenge else ()) + resource_metadata_urls(url)
    for metadata_url in dict.fromkeys(urls):
        answer = await web.get_json(metadata_url, referrer=url)
        # A server error does not mean that there is no metadata: the server's own origin must not be asked for
        # tokens.
        if answer.status >= 500:
            raise AuthError(f"the request for the server's metadata returned HTTP {answer.status}: try again later")
        if answer.status == 200 and isinstance(answer.document, dict):
            return read_resource_metadata(answer.document, url)
    return None


async def _find_origin_issuer(web: Web, url: str) -> IssuerMetadata:
    parts = urlsplit(url)
    origin = f"{parts.scheme}://{parts.netloc}"
    # As in 2025-03-26: the server's origin is the issuer, with the default paths below if the issuer has no metadata.
    metadata = await first_metadata(web, issuer_metadata_urls(origin)[:1], origin, url)
    if metadata is not None:
        return metadata
    return IssuerMetadata(
        issuer=origin,
        authorization_endpoint=f"{origin}/authorize",
        token_endpoint=f"{origin}/token",
        registration_endpoint=f"{origin}/register",
        code_challenge_methods_supported=["S256"],
    )
