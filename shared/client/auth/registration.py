"""How an issuer comes to know a client: it was registered, or a document of its own says it, or the issuer is told.

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

MAX_VISIBLE = 65_536
_PREFERRED = ("none", "client_secret_basic", "client_secret_post")


def is_visible(text: object) -> TypeGuard[str]:
    """Whether it is what ids, secrets, codes and tokens that an issuer makes up may be (RFC 6749, appendix A)."""
    return isinstance(text, str) and 0 < len(text) <= MAX_VISIBLE and all(" " <= char <= "~" for char in text)


@dataclass(frozen=True, slots=True)
class ClientInformation:
    """What an issuer knows a client by. It is shown without its secrets."""

    client_id: str
    secret: str | None = field(default=None, repr=False)
    private_key: str | None = field(default=None, repr=False)
    """PEM, for `private_key_jwt`."""
    algorithm: str = "ES256"
    """What the key signs with."""
    method: str | None = None
    """How it proves itself at the token endpoint; None leaves that to what the issuer takes."""
    issuer: str | None = None
    """Who knows it. Where that is not said it is the first issuer it is shown to, and no other."""

    def choose_method(self, issuer: IssuerMetadata) -> str:
        """How the client proves itself to `issuer`. Raises `AuthError` where it takes nothing that the client has."""
        if self.method is not None:
            return self.method
        taken = issuer.token_endpoint_auth_methods_supported
        if self.private_key is not None:
            able = ["private_key_jwt"]
        elif self.secret is not None:
            able = ["client_secret_basic", "client_secret_post", "none"]
        else:
            able = ["none"]
        # Where an issuer says nothing, the default is client_secret_basic (RFC 8414, section 2), which is the first
        # that a client with a secret can do.
        if taken is None or able == ["none"]:
            return able[0]
        for method in able:
            if method in taken:
                return method
        raise AuthError(f"the issuer accepts none of the client's ways to authenticate: {', '.join(able)}")

    def to_json(self) -> dict[str, Any]:
        """As a store keeps what an issuer has made up."""
        told = {"client_secret": self.secret, "token_endpoint_auth_method": self.method}
        return {"client_id": self.client_id, **{name: value for name, value in told.items() if value is not None}}

    @classmethod
    def from_json(cls, value: Mapping[str, Any], issuer: str) -> "ClientInformation":
        """What an issuer answered, or a store kept. Raises `AuthError` for what is none."""
        client_id, secret = value.get("client_id"), value.get("client_secret")
        method = value.get("token_endpoint_auth_method")
        if not is_visible(client_id) or (secret not in (None, "") and not is_visible(secret)):
            raise AuthError("the issuer has registered the client without a usable client_id or client_secret")
        return cls(client_id, secret or None, method=method if isinstance(method, str) else None, issuer=issuer)


async def register(
    web: Web, issuer: IssuerMetadata, redirect_uris: Sequence[str], name: str, scopes: Sequence[str]
) -> ClientInformation:
    """Tells the issuer of the client. Raises `AuthError`, with what the issuer says."""
    if issuer.registration_endpoint is None:
        raise AuthError(
            "the issuer has no dynamic registration: register a client there, and give its id with --client-id"
        )
    taken = issuer.token_endpoint_auth_methods_supported
    document: dict[str, Any] = {
        "client_name": name,
        "redirect_uris": list(redirect_uris),
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        # Issuers of OpenID Connect take redirects to this machine from native applications alone; 2026-07-28 has
        # clients say which they are.
        "application_type": "native" if all(map(_is_local, redirect_uris)) else "web",
        "token_endpoint_auth_method": next((one for one in _PREFERRED if one in (taken or _PREFERRED)), "none"),
    }
    if scopes:
        document["scope"] = " ".join(scopes)
    answer = await web.post_json(issuer.registration_endpoint, document, near=issuer.issuer)
    told = answer.document if isinstance(answer.document, dict) else {}
    if answer.status not in (200, 201):
        why = " ".join(str(told[key])[:200] for key in ("error", "error_description") if key in told)
        raise AuthError(f"the issuer did not register the client: HTTP {answer.status} {escape(why)}".rstrip())
    return ClientInformation.from_json(told, issuer.issuer)


def _is_local(uri: str) -> bool:
    parts = urlsplit(uri)
    return parts.scheme not in ("http", "https") or parts.hostname in ("localhost", "127.0.0.1", "::1")
