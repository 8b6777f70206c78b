"""The authorization of a client: how it obtains the tokens that a remote server requires (2026-07-28, Authorization).

The entry points are `oauth.py`, with one of `grants.py`, and `httpx_auth.py` for a program's own requests. Elsewhere

- the challenges in a refusal are parsed: `challenges.py`;
- the issuer of tokens for the server is discovered: `discovery.py`, by the rules of `shared/auth/metadata.py`;
- a client is registered with an issuer: `registration.py`;
- tokens are requested: `token_endpoint.py`; a person is sent to log in: `authorization.py`;
- scopes are chosen: `discovery.py`; the possession of a token's key is proved: `proofs.py`;
- tokens are stored: `tokens.py` defines the interface of a store.
"""

from .authorization import Redirect
from .grants import AuthorizationCode, ClientCredentials, EnterpriseManaged, WorkloadIdentity
from .httpx_auth import HttpxAuth
from .oauth import OAuth, OAuthOptions
from .registration import ClientInformation
from .tokens import MemoryTokens, TokenStore

__all__ = [
    "AuthorizationCode",
    "ClientCredentials",
    "ClientInformation",
    "EnterpriseManaged",
    "HttpxAuth",
    "MemoryTokens",
    "OAuth",
    "OAuthOptions",
    "Redirect",
    "TokenStore",
    "WorkloadIdentity",
]
