"""The authenticator of a listener, built from the options.

OAuth code is loaded only if the operator has named an issuer.
"""

import logging
import os
import re
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ..auth.tokens import StaticTokens
from ..auth.tokens_file import TokenFile, TokensFile
from ..errors import AuthError
from .messages import missing_extra_message
from .protection import ProtectionOptions

if TYPE_CHECKING:
    from ..contracts import Authenticator
    from ..transports.http.app.oauth_metadata import Issuers

log = logging.getLogger("shared.program")

_CACHE_SECONDS, _ANSWER_CACHE_SECONDS = 300.0, 60.0
"""Seconds for which valid tokens are cached: signed tokens, and tokens that their issuer has confirmed."""


def static_tokens(options: ProtectionOptions, token: str | None, path: Path | None = None) -> StaticTokens:
    """Return the operator's own tokens: `token`, and the tokens in a file of named tokens. If `path` is given,
    `token` comes from this file. Both files are read again after a change. Raises ValueError with a one-line
    message."""
    files: list[TokensFile] = []
    # A pipe can be read only once, so the token from it does not change.
    if path is not None and path.is_file():
        token = None
        files.append(TokenFile(path))
    if options.tokens_file is not None:
        files.append(TokensFile(options.tokens_file))
        if files[-1].is_exposed:
            log.warning("--tokens-file: users other than its owner can read or write %s", options.tokens_file)
    return StaticTokens(() if token is None else (token,), *files)


def authenticator_of(options: ProtectionOptions, own_tokens: StaticTokens) -> "Authenticator":
    """Return the authenticator of a listener, which accepts the operator's `own_tokens` and tokens from issuers.
    Raises ValueError with a one-line message if the options can't be used."""
    if not options.auth_issuer:
        return own_tokens
    if any(find_spec(name) is None for name in ("joserfc", "httpx")):
        raise ValueError(f"--auth-issuer: {missing_extra_message('auth')}")
    from ..auth.authenticators import OAuthTokens
    from ..auth.claims import ClaimRules
    from ..auth.first_contact import FirstContact
    from ..auth.introspection import Introspection
    from ..auth.issuers import Issuer
    from ..auth.jose import ALGORITHMS
    from ..auth.jwt import JwtTokens
    from ..auth.possession import Possession
    from ..auth.web import Web

    web, has_several_issuers = Web(), len(options.auth_issuer) > 1
    rules = ClaimRules(options.auth_skew, options.auth_principal_claim, has_several_issuers)
    try:
        issuers = [Issuer(url, web) for url in options.auth_issuer]
    except AuthError as error:
        raise ValueError(f"--auth-issuer: {error}") from None
    unknown = sorted(set(options.auth_algorithm) - ALGORITHMS)
    if unknown:
        raise ValueError(
            f"--auth-algorithm: unknown algorithm {unknown[0]}; available: {', '.join(sorted(ALGORITHMS))}"
        )
    # A shared key to sign nonces, so that every replica accepts the nonces of the others.
    key = os.environ.get("MCP_STATE_KEY", "")
    possession = Possession(options.auth_dpop, sha256(b"nonces\0" + key.encode()).digest() if key else None)
    if options.auth_client_id is None:
        tokens = JwtTokens(issuers, rules, options.auth_algorithm or ALGORITHMS)
        first_contact = FirstContact({issuer.url: issuer.load_keys for issuer in issuers})
        return OAuthTokens(
            tokens, possession, own_tokens=own_tokens, first_contact=first_contact, cache_seconds=_CACHE_SECONDS
        )
    if has_several_issuers:
        raise ValueError("--auth-client-id: introspection needs exactly one --auth-issuer")
    introspection = Introspection(issuers[0], options.auth_client_id, _read_client_secret(options), rules, web)
    first_contact = FirstContact({issuers[0].url: issuers[0].metadata})
    return OAuthTokens(
        introspection,
        possession,
        own_tokens=own_tokens,
        first_contact=first_contact,
        cache_seconds=_ANSWER_CACHE_SECONDS,
    )


def issuers_of(options: ProtectionOptions) -> "Issuers | None":
    """Return the issuers of tokens, for the metadata of the servers; None if only the operator issues tokens."""
    if not options.auth_issuer:
        return None
    from ..auth.jose import ALGORITHMS
    from ..transports.http.app.oauth_metadata import Issuers

    public_url = None if options.public_url is None else check_public_url(options.public_url)
    needs_proof = options.auth_dpop != "bound"
    return Issuers(tuple(options.auth_issuer), public_url, tuple(sorted(ALGORITHMS)), needs_proof)


def check_public_url(url: str) -> str:
    """Return `url` in its canonical form (2026-07-28, Authorization, Canonical Server URI). Raises ValueError if the
    URL is invalid for a listener."""
    from ..auth.metadata import canonical

    parts, is_well_formed = urlsplit(url), re.fullmatch(r"[!#-\[\]-~]+", url)
    try:
        has_address = bool(parts.hostname) and parts.port != 0
    except ValueError:
        has_address = False
    if (
        not (is_well_formed and has_address)
        or parts.scheme.lower() not in ("http", "https")
        or parts.query
        or parts.fragment
    ):
        raise ValueError("--public-url: write it as https://HOST, with a path if the proxy adds one")
    if parts.username is not None:
        raise ValueError("--public-url: it contains a user name, which everyone would see")
    return canonical(url).rstrip("/")


def _read_client_secret(options: ProtectionOptions) -> str:
    path: Path | None = options.auth_client_secret_file
    if path is None:
        secret = options.auth_client_secret or ""
    else:
        try:
            secret = path.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "is not UTF-8"
            raise ValueError(f"--auth-client-secret-file: {path}: {reason}") from None
    if not secret:
        raise ValueError("--auth-client-id: introspection needs a secret: pass it with --auth-client-secret-file")
    return secret
