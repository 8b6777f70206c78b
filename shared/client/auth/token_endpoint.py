"""Token requests to an authorization server (RFC 6749, section 5). Authlib encodes their forms."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, quote_plus, urlencode

from authlib.oauth2.auth import ClientAuth
from authlib.oauth2.rfc6749.parameters import prepare_token_request
from authlib.oauth2.rfc7009 import prepare_revoke_token_request
from authlib.oauth2.rfc7523.assertion import private_key_jwt_sign
from authlib.oauth2.rfc7523.client import ASSERTION_TYPE
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey, RSAKey

from ...auth.addresses import parse_allowed_url
from ...auth.metadata import IssuerMetadata, is_same_issuer
from ...auth.web import Answer, Web
from ...errors import AuthError
from ...text import escape
from .proofs import Proofs
from .registration import ClientInformation, is_visible_ascii
from .tokens import Token

_KEY_TYPES: dict[str, type[ECKey | RSAKey | OKPKey]] = {"ES": ECKey, "RS": RSAKey, "PS": RSAKey}
_ASSERTION_SECONDS = 60
"""The lifetime in seconds of a signed assertion; it is used at once, so a short one suffices."""
_MAX_LIFETIME_SECONDS = 10 * 365 * 24 * 3600
"""The longest plausible lifetime of a token in seconds. With a longer one, the expiry is treated as unknown."""
_PUBLIC_FIELDS = {"audience", "client_id", "grant_type", "redirect_uri", "resource", "scope"}
"""The fields of a request whose values may appear in an error's text, besides those whose names end in `_type`."""


class TokenRefused(AuthError):
    """Raised if an authorization server refuses a token; `error` is its error code (RFC 6749, section 5.2)."""

    def __init__(self, error: str, message: str) -> None:
        super().__init__(message)
        self.error = error


class TokenEndpoint:
    """The token endpoint of an issuer, for one of its clients."""

    def __init__(
        self,
        web: Web,
        issuer: IssuerMetadata,
        client: ClientInformation | None,
        now: Callable[[], float],
        proofs: Proofs | None = None,
    ) -> None:
        """`client` is None if the fields of the requests identify the client. Raises `AuthError` if the issuer has no
        token endpoint, or `client` is registered with another issuer."""
        if issuer.token_endpoint is None:
            raise AuthError("the issuer has no token endpoint")
        if client is not None and client.issuer is not None and not is_same_issuer(client.issuer, issuer.issuer):
            raise AuthError("the client is not registered with this issuer")
        parse_allowed_url(issuer.token_endpoint)
        self._url = issuer.token_endpoint
        self._web = web
        self._issuer = issuer
        self._client = client
        self.now = now
        """Returns the time in seconds since 1970."""
        self._proofs = proofs

    async def request_token(self, grant_type: str, fields: Mapping[str, str | None], scopes: frozenset[str]) -> Token:
        """Request a token with the fields of a grant. `scopes` are the scopes of the token if the answer names none.
        Raises `TokenRefused`, and other `AuthError`s."""
        document = await self.request_document(grant_type, fields)
        access, kind = document.get("access_token"), document.get("token_type")
        if not is_visible_ascii(access) or " " in access or not isinstance(kind, str):
            raise AuthError("the issuer returned no usable token")
        kind = kind.lower()
        if kind not in ("bearer", "dpop") or (kind == "dpop" and self._proofs is None):
            raise AuthError("the issuer issued a token of a different type than requested")
        # A token that is not bound to the key must not be accepted instead: a thief could use it.
        if self._proofs is not None and kind != "dpop":
            raise AuthError("the issuer issued a token that is not bound to the client's key")
        lifetime, granted, refresh = (document.get(name) for name in ("expires_in", "scope", "refresh_token"))
        expires = None
        if (
            isinstance(lifetime, int | float)
            and not isinstance(lifetime, bool)
            and 0 < lifetime <= _MAX_LIFETIME_SECONDS
        ):
            expires = self.now() + lifetime
        return Token(
            access,
            kind,
            frozenset(granted.split()) if isinstance(granted, str) and granted else scopes,
            expires,
            refresh if is_visible_ascii(refresh) else None,
        )

    async def request_document(self, grant_type: str, fields: Mapping[str, str | None]) -> dict[str, Any]:
        """Return the whole answer to a token request. Raises the same errors as `request_token`."""
        # Empty parameters are omitted, which means the same (RFC 6749, section 3.2).
        present = {name: value for name, value in fields.items() if value}
        with _convert_encoding_errors():
            headers, body = self._authenticate(prepare_token_request(grant_type, **present))
        answer = await self._post(dict(parse_qsl(body)), headers)
        document = answer.document
        if not isinstance(document, dict):
            raise AuthError(f"the issuer answered a token request with HTTP {answer.status} and no JSON")
        if answer.status == 200 and "error" not in document:
            return document
        private_fields = [(name, value) for name, value in parse_qsl(body) if name not in _PUBLIC_FIELDS]
        secrets = [value for name, value in private_fields if not name.endswith("_type")]
        # The issuer's text is shown and logged, and may repeat secrets of the request.
        secrets += [self._client.secret or ""] if self._client else []
        unknown, description = f"HTTP {answer.status}", document.get("error_description")
        error = _redact(secrets, str(document.get("error", unknown)), unknown)[:100]
        reason = _redact(secrets, description, "")[:300] if isinstance(description, str) else ""
        text = f"the issuer refused to issue a token: {escape(error)}" + (f": {escape(reason)}" if reason else "")
        raise TokenRefused(error, text)

    async def revoke(self, token: Token) -> bool:
        """Ask the issuer to revoke `token` and its refresh token (RFC 7009). Returns True if the issuer confirms.
        Raises `AuthError` if it can't be reached."""
        endpoint = self._issuer.revocation_endpoint
        if endpoint is None:
            return False
        hint, secret = ("refresh_token", token.refresh) if token.refresh else ("access_token", token.access)
        with _convert_encoding_errors():
            headers, body = self._authenticate(prepare_revoke_token_request(secret, hint)[0])
        answer = await self._web.post_form(
            endpoint, dict(parse_qsl(body)), referrer=self._issuer.issuer, headers=headers
        )
        return answer.status == 200

    async def _post(self, fields: Mapping[str, str], headers: Mapping[str, str]) -> Answer:
        issuer, proofs = self._issuer.issuer, self._proofs
        if proofs is None:
            return await self._web.post_form(self._url, fields, referrer=issuer, headers=headers)
        proof = proofs.headers("POST", self._url)
        answer = await self._web.post_form(self._url, fields, referrer=issuer, headers={**headers, **proof})
        is_new, document = proofs.learn(self._url, answer.headers), answer.document
        # The request is sent again once, with the new nonce (RFC 9449, section 8). An issuer that requires another
        # nonce each time would otherwise be asked forever.
        if not is_new or not isinstance(document, dict) or document.get("error") != "use_dpop_nonce":
            return answer
        proof = proofs.headers("POST", self._url)
        answer = await self._web.post_form(self._url, fields, referrer=issuer, headers={**headers, **proof})
        proofs.learn(self._url, answer.headers)
        return answer

    def _authenticate(self, body: str) -> tuple[dict[str, str], str]:
        client = self._client
        if client is None:
            return {}, body
        method = client.choose_method(self._issuer)
        if method == "private_key_jwt":
            identification = {"client_id": client.client_id, "client_assertion_type": ASSERTION_TYPE}
            return {}, f"{body}&{urlencode({**identification, 'client_assertion': self._assertion(client)})}"
        if method not in ClientAuth.DEFAULT_AUTH_METHODS:
            raise AuthError(f"the client can't authenticate with {escape(method)[:50]}")
        # For client_secret_basic both values must be form-encoded first, which Authlib does not do (RFC 6749, section
        # 2.3.1).
        encode = quote_plus if method == "client_secret_basic" else str
        auth = ClientAuth(encode(client.client_id), encode(client.secret or ""), method)
        _, headers, body = auth.prepare("POST", self._url, {}, body)  # type: ignore[no-untyped-call]
        return dict(headers), str(body)

    def _assertion(self, client: ClientInformation) -> str:
        kind = _KEY_TYPES.get(client.algorithm[:2], OKPKey)
        try:
            key = kind.import_key(client.private_key or "")
            return private_key_jwt_sign(
                key,
                client.client_id,
                self._issuer.issuer,
                client.algorithm,
                issued_at=int(self.now()),
                expires_in=_ASSERTION_SECONDS,
            )
        except (JoseError, ValueError, TypeError):
            raise AuthError("the client's private key can't sign with an algorithm that the issuer accepts") from None


def _redact(secrets: Iterable[str], text: str, replacement: str) -> str:
    """Return the issuer's text, or `replacement` if the text repeats a secret, plain or form-encoded."""
    # Values of up to three characters are no secrets, and occur in many words.
    long_secrets = [secret for secret in secrets if len(secret) > 3]
    return (
        replacement if any(form in text for secret in long_secrets for form in (secret, quote_plus(secret))) else text
    )


@contextmanager
def _convert_encoding_errors() -> Iterator[None]:
    """Raise AuthError if a text contains a lone surrogate, which can't be encoded."""
    try:
        yield
    except UnicodeError:
        raise AuthError("the request to the issuer has characters that can't be sent") from None
