"""Asks an authorization server for tokens (RFC 6749, section 5). The forms are Authlib's."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeGuard
from urllib.parse import parse_qsl, quote_plus, urlencode

from authlib.oauth2.auth import ClientAuth
from authlib.oauth2.rfc6749.parameters import prepare_token_request
from authlib.oauth2.rfc7009 import prepare_revoke_token_request
from authlib.oauth2.rfc7523.assertion import private_key_jwt_sign
from authlib.oauth2.rfc7523.client import ASSERTION_TYPE
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey, RSAKey

from ...auth.addresses import check_scheme
from ...auth.metadata import IssuerMetadata
from ...auth.web import Answer, Web
from ...errors import AuthError
from ...text import escape
from .proofs import Proofs
from .registration import ClientInformation, is_visible
from .tokens import Token

_KINDS: dict[str, type[ECKey | RSAKey | OKPKey]] = {"ES": ECKey, "RS": RSAKey, "PS": RSAKey}
_ASSERTED_SECONDS = 60
_MOST_SECONDS = 10 * 365 * 24 * 3600
"""What is said to last longer is taken for a mistake: nobody knows when it ends."""
_PUBLIC = {"audience", "client_id", "grant_type", "redirect_uri", "resource", "scope"}
"""Fields of a request that an error may repeat, besides those that name a type."""


class TokenRefused(AuthError):
    """An authorization server has issued no token; `error` is its code for that (RFC 6749, section 5.2)."""

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
        """`client` is None where what is asked with says by itself who asks. Raises `AuthError`."""
        if issuer.token_endpoint is None:
            raise AuthError("the issuer has no token endpoint")
        if client is not None and client.issuer not in (None, issuer.issuer):
            raise AuthError("the client is not one of this issuer")
        check_scheme(issuer.token_endpoint)
        self._url = issuer.token_endpoint
        self._web = web
        self._issuer = issuer
        self._client = client
        self.now = now
        """The clock."""
        self._proofs = proofs

    async def ask(self, grant_type: str, fields: Mapping[str, str | None], scopes: frozenset[str]) -> Token:
        """The token for a grant. `scopes` are what it is for where the answer does not say. Raises `TokenRefused`,
        and other `AuthError`s."""
        document = await self.ask_document(grant_type, fields)
        access, kind = document.get("access_token"), document.get("token_type")
        if not is_visible(access) or " " in access or not isinstance(kind, str):
            raise AuthError("the issuer has answered without a usable token")
        kind = kind.lower()
        if kind not in ("bearer", "dpop") or (kind == "dpop" and self._proofs is None):
            raise AuthError("the issuer has issued a token of another type than was asked for")
        # Silently less than was asked for: whoever steals it could use it.
        if self._proofs is not None and kind != "dpop":
            raise AuthError("the issuer has issued a token that is not bound to the key of the client")
        lasts, granted, refresh = (document.get(name) for name in ("expires_in", "scope", "refresh_token"))
        return Token(
            access,
            kind,
            frozenset(granted.split()) if isinstance(granted, str) and granted else scopes,
            self.now() + lasts if _is_duration(lasts) else None,
            refresh if is_visible(refresh) else None,
        )

    async def ask_document(self, grant_type: str, fields: Mapping[str, str | None]) -> dict[str, Any]:
        """The whole answer. Raises like `ask`."""
        # An empty parameter counts as one that is left out (RFC 6749, section 3.2).
        given = {name: value for name, value in fields.items() if value}
        with _sendable():
            headers, body = self._authenticated(prepare_token_request(grant_type, **given))
        answer = await self._post(dict(parse_qsl(body)), headers)
        document = answer.document
        if not isinstance(document, dict):
            raise AuthError(f"the issuer has answered a request for a token with HTTP {answer.status} and no JSON")
        if answer.status != 200 or "error" in document:
            raise self._refusal(answer, body)
        return document

    async def revoke(self, token: Token) -> bool:
        """Has the issuer take back `token`, and what renews it; whether it has said so (RFC 7009). Raises
        `AuthError` where it is out of reach."""
        place = self._issuer.revocation_endpoint
        if place is None:
            return False
        hint, secret = ("refresh_token", token.refresh) if token.refresh else ("access_token", token.access)
        with _sendable():
            headers, body = self._authenticated(prepare_revoke_token_request(secret, hint)[0])
        answer = await self._web.post_form(place, dict(parse_qsl(body)), near=self._issuer.issuer, headers=headers)
        return answer.status == 200

    async def _post(self, fields: Mapping[str, str], headers: Mapping[str, str]) -> Answer:
        near, proofs = self._issuer.issuer, self._proofs
        if proofs is None:
            return await self._web.post_form(self._url, fields, near=near, headers=headers)
        proof = proofs.headers("POST", self._url)
        answer = await self._web.post_form(self._url, fields, near=near, headers={**headers, **proof})
        is_new, document = proofs.learn(self._url, answer.headers), answer.document
        # Once more, with the nonce: an issuer that asks for another one each time would be asked for ever (RFC
        # 9449, section 8).
        if not is_new or not isinstance(document, dict) or document.get("error") != "use_dpop_nonce":
            return answer
        proof = proofs.headers("POST", self._url)
        answer = await self._web.post_form(self._url, fields, near=near, headers={**headers, **proof})
        proofs.learn(self._url, answer.headers)
        return answer

    def _authenticated(self, body: str) -> tuple[dict[str, str], str]:
        client = self._client
        if client is None:
            return {}, body
        method = client.choose_method(self._issuer)
        if method == "private_key_jwt":
            named = {"client_id": client.client_id, "client_assertion_type": ASSERTION_TYPE}
            return {}, f"{body}&{urlencode({**named, 'client_assertion': self._assertion(client)})}"
        if method not in ClientAuth.DEFAULT_AUTH_METHODS:
            raise AuthError(f"the client can't prove itself by {escape(method)[:50]}")
        # Authlib leaves out that both are coded like a form there (RFC 6749, section 2.3.1).
        code = quote_plus if method == "client_secret_basic" else str
        auth = ClientAuth(code(client.client_id), code(client.secret or ""), method)
        _, headers, body = auth.prepare("POST", self._url, {}, body)  # type: ignore[no-untyped-call]
        return dict(headers), str(body)

    def _assertion(self, client: ClientInformation) -> str:
        kind = _KINDS.get(client.algorithm[:2], OKPKey)
        try:
            key = kind.import_key(client.private_key or "")
            return private_key_jwt_sign(
                key,
                client.client_id,
                self._issuer.issuer,
                client.algorithm,
                issued_at=int(self.now()),
                expires_in=_ASSERTED_SECONDS,
            )
        except (JoseError, ValueError, TypeError):
            raise AuthError("the private key of the client can't sign what the issuer wants") from None

    def _refusal(self, answer: Answer, body: str) -> TokenRefused:
        told = answer.document.get("error_description")
        given = [(name, value) for name, value in parse_qsl(body) if name not in _PUBLIC]
        secrets = [value for name, value in given if not name.endswith("_type")]
        # An issuer may repeat in its text what it was sent, and this text is shown and logged.
        secrets += [self._client.secret or ""] if self._client else []
        nothing = f"HTTP {answer.status}"
        error = _without(secrets, str(answer.document.get("error", nothing)), nothing)[:100]
        why = _without(secrets, told, "")[:300] if isinstance(told, str) else ""
        text = f"the issuer has refused a token: {escape(error)}" + (f": {escape(why)}" if why else "")
        return TokenRefused(error, text)


def _without(secrets: Iterable[str], text: str, otherwise: str) -> str:
    """The text of an issuer, unless it repeats a secret, as it is or as a form has it."""
    # A value of three letters is in many a word, and no secret.
    long = [secret for secret in secrets if len(secret) > 3]
    return otherwise if any(one in text for secret in long for one in (secret, quote_plus(secret))) else text


def _is_duration(lasts: object) -> TypeGuard[float]:
    return isinstance(lasts, int | float) and not isinstance(lasts, bool) and 0 < lasts <= _MOST_SECONDS


@contextmanager
def _sendable() -> Iterator[None]:
    """Raises AuthError for half a letter (a lone surrogate) in what others have made up."""
    try:
        yield
    except UnicodeError:
        raise AuthError("the request to the issuer has characters that can't be sent") from None
