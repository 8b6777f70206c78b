"""The registration of a client with an issuer: made by hand, by a metadata document of the client, or dynamically.

(2026-07-28, Authorization, Client Registration Approaches; RFC 7591.)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard
from urllib.parse import urlsplit

from ...auth.metadata import IssuerMetadata
from ...auth.web import Web
from ...errors import AuthError
from ...text import escape

MAX_CREDENTIAL_LENGTH = 65_536
"""Maximum number of characters of an id, secret, code or token."""
_PREFERRED_METHODS = ("none", "client_secret_basic", "client_secret_post")
"""The authentication methods to register, best first. "none" comes first because a program on the user's machine
can't keep a secret."""


def is_visible_ascii(text: object) -> TypeGuard[str]:
    """Return True if `text` has the form of an id, secret, code or token from an issuer (RFC 6749, appendix A)."""
    return (
        isinstance(text, str) and 0 < len(text) <= MAX_CREDENTIAL_LENGTH and all(" " <= char <= "~" for char in text)
    )


@dataclass(frozen=True, slots=True)
class ClientInformation:
    """A client's registration with an issuer. Its `repr` contains no secrets."""

    client_id: str
    secret: str | None = field(default=None, repr=False)
    private_key: str | None = field(default=None, repr=False)
    """A private key in PEM format, for `private_key_jwt`."""
    algorithm: str = "ES256"
    """The signature algorithm of the key."""
    method: str | None = None
    """The authentication method at the token endpoint; None for the best one that the issuer supports."""
    issuer: str | None = None
    """The issuer with which the client is registered; None for the first issuer to which the client is presented."""

    def choose_method(self, issuer: IssuerMetadata) -> str:
        """Return the authentication method to use with `issuer`. Raises `AuthError` if the issuer supports none of
        the client's methods."""
        if self.method is not None:
            return self.method
        supported = issuer.token_endpoint_auth_methods_supported
        if self.private_key is not None:
            possible = ["private_key_jwt"]
        elif self.secret is not None:
            possible = ["client_secret_basic", "client_secret_post", "none"]
        else:
            possible = ["none"]
        # If an issuer names no methods, the default is client_secret_basic (RFC 8414, section 2), which is also the
        # first possible method of a client with a secret.
        if supported is None or possible == ["none"]:
            return possible[0]
        for method in possible:
            if method in supported:
                return method
        raise AuthError(f"the issuer accepts none of the client's authentication methods: {', '.join(possible)}")

    def to_json(self) -> dict[str, Any]:
        """Return the registration in the form in which it is stored."""
        optional = {"client_secret": self.secret, "token_endpoint_auth_method": self.method}
        return {"client_id": self.client_id, **{name: value for name, value in optional.items() if value is not None}}

    @classmethod
    def from_json(cls, value: Mapping[str, Any], issuer: str) -> "ClientInformation":
        """Return the client from an issuer's answer or from a store. Raises `AuthError` if `value` is invalid."""
        client_id, secret = value.get("client_id"), value.get("client_secret")
        method = value.get("token_endpoint_auth_method")
        if not is_visible_ascii(client_id) or (secret not in (None, "") and not is_visible_ascii(secret)):
            raise AuthError("the issuer registered the client without a usable client_id or client_secret")
        return cls(client_id, secret or None, method=method if isinstance(method, str) else None, issuer=issuer)


async def register(
    web: Web, issuer: IssuerMetadata, redirect_uris: Sequence[str], name: str, scopes: Sequence[str]
) -> ClientInformation:
    """Register the client with the issuer. Raises `AuthError` with the issuer's error."""
    if issuer.registration_endpoint is None:
        raise AuthError(
            "the issuer does not support dynamic client registration: register a client manually, and pass its ID "
            "with --client-id"
        )
    supported = issuer.token_endpoint_auth_methods_supported
    document: dict[str, Any] = {
        "client_name": name,
        "redirect_uris": list(redirect_uris),
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        # 2026-07-28 requires `application_type`; OpenID Connect issuers accept redirects to the user's machine only
        # for native applications.
        "application_type": "native" if all(map(_is_local, redirect_uris)) else "web",
        "token_endpoint_auth_method": next(
            (method for method in _PREFERRED_METHODS if method in (supported or _PREFERRED_METHODS)), "none"
        ),
    }
    if scopes:
        document["scope"] = " ".join(scopes)
    answer = await web.post_json(issuer.registration_endpoint, document, referrer=issuer.issuer)
    body = answer.document if isinstance(answer.document, dict) else {}
    if answer.status not in (200, 201):
        reason = " ".join(str(body[key])[:200] for key in ("error", "error_description") if key in body)
        raise AuthError(f"the issuer did not register the client: HTTP {answer.status} {escape(reason)}".rstrip())
    return ClientInformation.from_json(body, issuer.issuer)


def _is_local(uri: str) -> bool:
    parts = urlsplit(uri)
    return parts.scheme not in ("http", "https") or parts.hostname in ("localhost", "127.0.0.1", "::1")
