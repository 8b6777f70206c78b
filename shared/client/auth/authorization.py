"""A person is sent to log in, and comes back with a code (RFC 6749, section 4.1; PKCE: RFC 7636; `iss`: RFC 9207)."""

import secrets
from collections.abc import Mapping, Sequence
from typing import Protocol

from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
from authlib.oauth2.rfc7636 import create_s256_code_challenge

from ...auth.addresses import check_scheme
from ...auth.metadata import IssuerMetadata
from ...errors import AuthError
from ...protocol.records import record
from ...text import escape
from .registration import is_visible


class Redirect(Protocol):
    """How a person is sent to a page, and comes back to one of ours."""

    @property
    def redirect_uris(self) -> Sequence[str]:
        """Where it comes back to. The first is used, and all are what issuers are told of."""

    async def open(self, url: str) -> Mapping[str, str]:
        """Sends the person to `url`, and waits: the parameters with which it has come back. Raises `AuthError` where
        it does not."""


@record
class Authorization:
    """What one request for authorization began with, which nobody else knows."""

    state: str
    verifier: str

    @classmethod
    def begin(cls) -> "Authorization":
        """A new one."""
        return cls(secrets.token_urlsafe(32), secrets.token_urlsafe(48))

    def url(
        self, issuer: IssuerMetadata, client_id: str, redirect_uri: str, scopes: frozenset[str], resource: str | None
    ) -> str:
        """Where to send the person. Raises `AuthError` for an issuer that takes no proof of a code."""
        if issuer.authorization_endpoint is None:
            raise AuthError("the issuer has no page to log in")
        # 2026-07-28 has clients refuse to go on where the metadata does not say so: an issuer that ignores the
        # challenge would look the same.
        if "S256" not in (issuer.code_challenge_methods_supported or ()):
            raise AuthError("the issuer does not say that it takes PKCE (S256), without which a code can be stolen")
        check_scheme(issuer.authorization_endpoint)
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
        except UnicodeError:  # half a letter (a lone surrogate) in a scope
            raise AuthError("the page to log in has a URL with characters that can't be sent") from None
        return str(page)

    def code(self, answer: Mapping[str, str], issuer: IssuerMetadata) -> str:
        """The code with which the person came back. Raises `AuthError`; what somebody else than the issuer says is
        not repeated."""
        # Before anything else of the answer is looked at: without our state it is somebody else's, error or not.
        if not secrets.compare_digest(answer.get("state", "").encode(errors="replace"), self.state.encode()):
            raise AuthError("the answer to the login has the wrong state")
        check_iss(answer.get("iss"), issuer)
        if "error" in answer:
            why = " ".join(answer[key][:300] for key in ("error", "error_description") if key in answer)
            raise AuthError(f"the login failed: {escape(why)}")
        if not is_visible(answer.get("code")):
            raise AuthError("the answer to the login has no usable code")
        return answer["code"]


def check_iss(iss: str | None, issuer: IssuerMetadata) -> None:
    """Raises `AuthError` where an answer is not, or may not be, from the issuer that was asked: texts are compared as
    they are (RFC 9207, section 2.4)."""
    if iss is None and issuer.authorization_response_iss_parameter_supported:
        raise AuthError("the answer to the login has no iss, though the issuer says that it sends one")
    if iss is not None and iss != issuer.issuer:
        raise AuthError("the answer to the login has the iss of another issuer")
