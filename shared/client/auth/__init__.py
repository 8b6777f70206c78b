"""How a client obtains what a server behind a URL wants of it (2026-07-28, Authorization).

What a program uses: `oauth.py`, with one of `grants.py`, and `httpx_auth.py` for its own requests. Where

- what a server says to whom it refuses is read: `challenges.py`;
- it is found out who issues tokens for the server: `discovery.py`, by the rules of `shared/auth/metadata.py`;
- a client becomes one that an issuer knows: `registration.py`;
- tokens are asked for: `token_endpoint.py`; a person is sent to log in: `authorization.py`;
- scopes are chosen: `scopes.py`; the key of a token is proved: `proofs.py`;
- tokens are kept: `tokens.py` has the seam.
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
