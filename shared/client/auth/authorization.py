"""The login of a person, who returns with a code (RFC 6749, section 4.1; PKCE: RFC 7636; `iss`: RFC 9207)."""

import secrets
from collections.abc import Mapping, Sequence
from typing import Protocol

from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
from authlib.oauth2.rfc7636 import create_s256_code_challenge

from ...auth.addresses import parse_allowed_url
from ...auth.metadata import IssuerMetadata
from ...errors import AuthError
from ...protocol.records import record
from ...text import escape
from .registration import is_visible_ascii


class Redirect(Protocol):
    """Sends the user to a login page, and receives the redirect to one of the client's URIs."""

    @property
    def redirect_uris(self) -> Sequence[str]:
        """The redirect URIs. All are registered with issuers; logins use the first."""

    async def open(self, url: str) -> Mapping[str, str]:
        """Send the user to `url`, and wait for the redirect. Returns the query parameters of the redirect. Raises
        `AuthError` if there is no redirect."""


@record
class Authorization:
    """The state and the PKCE verifier of one authorization request, which nobody else knows."""

    state: str
    verifier: str

    @classmethod
    def begin(cls) -> "Authorization":
        """Return new random values."""
        return cls(secrets.token_urlsafe(32), secrets.token_urlsafe(48))

    def url(
        self, issuer: IssuerMetadata, client_id: str, redirect_uri: str, scopes: frozenset[str], resource: str | None
    ) -> str:
        """Return the URL of the login page. Raises `AuthError` for an issuer that does not support PKCE."""
        if issuer.authorization_endpoint is None:
            raise AuthError("the issuer has no login page")
        # 2026-07-28 requires clients to stop if the metadata does not declare PKCE: an issuer that ignores the
        # challenge could not be told apart from one that checks it.
        if "S256" not in (issuer.code_challenge_methods_supported or ()):
            raise AuthError(
                "the issuer does not declare support for PKCE (S256), without which a login code can be stolen"
            )
        parse_allowed_url(issuer.authorization_endpoint)
        challenge = create_s256_code_challenge(self.verifier)  # type: ignore[no-untyped-call]
        try:
            page = prepare_grant_uri(
                issuer.authorization_endpoint,
                client_id,
                "code",
                redirect_uri,
                sorted(scopes) or None,
                self.state,
                code_challenge=challenge,
                code_challenge_method="S256",
                resource=resource,
            )
        except UnicodeError:  # a lone surrogate in a scope
            raise AuthError("the URL of the login page has characters that can't be sent") from None
        return str(page)

    def code(self, answer: Mapping[str, str], issuer: IssuerMetadata) -> str:
        """Return the code from the redirect. Raises `AuthError`, whose text quotes only the issuer."""
        # The state is checked first: without the expected state the redirect belongs to another login, even if it
        # reports an error.
        if not secrets.compare_digest(answer.get("state", "").encode(errors="replace"), self.state.encode()):
            raise AuthError("the login response has the wrong state")
        check_iss(answer.get("iss"), issuer)
        if "error" in answer:
            reason = " ".join(answer[key][:300] for key in ("error", "error_description") if key in answer)
            raise AuthError(f"the login failed: {escape(reason)}")
        if not is_visible_ascii(answer.get("code")):
            raise AuthError("the login response has no usable code")
        return answer["code"]


def check_iss(iss: str | None, issuer: IssuerMetadata) -> None:
    """Raise `AuthError` if a login response may be from another issuer than the one that received the request. `iss`
    is compared with the issuer's identifier character by character (RFC 9207, section 2.4)."""
    if iss is None and issuer.authorization_response_iss_parameter_supported:
        raise AuthError("the login response has no iss, although the issuer declares that it sends one")
    if iss is not None and iss != issuer.issuer:
        raise AuthError("the login response has the iss of a different issuer")
