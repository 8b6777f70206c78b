"""The authorization of a client: how it obtains what a server behind a URL requires (2026-07-28, Authorization).

The entry points are `oauth.py`, with one of `grants.py`, and `httpx_auth.py` for a program's own requests. Elsewhere

- the challenges of a refusal are parsed: `challenges.py`;
- the issuer of the tokens for the server is discovered: `discovery.py`, by the rules of `shared/auth/metadata.py`;
- a client is registered with an issuer: `registration.py`;
- tokens are requested: `token_endpoint.py`; a person is sent to log in: `authorization.py`;
- scopes are chosen: `discovery.py`; the key of a token is proved: `proofs.py`;
- tokens are stored: `tokens.py` has the interface.
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
