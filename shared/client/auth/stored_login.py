"""Reads and writes a login in a `TokenStore`, so that the next run of a program can use it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from ...auth.metadata import IssuerMetadata, ResourceMetadata, canonical
from ...errors import AuthError
from ...protocol.records import record
from .discovery import Discovery
from .grants import Grant, binding_of
from .proofs import Proofs
from .registration import ClientInformation
from .tokens import Key, Token, TokenStore


@record
class Login:
    """The issuer of the tokens for a server, and the client and keys used with it."""

    discovery: Discovery
    client: ClientInformation | None
    """None if the grant needs no client."""
    key: Key
    """The key under which the login is stored."""
    proofs: Proofs | None
    """Proves the possession of the key to which the tokens are bound; None if they are not bound to a key."""


@record
class StoredLogin:
    """A login and its token, as a store contains them."""

    login: Login
    token: Token
    requested: frozenset[str]
    """The requested scopes, whether or not they were granted."""


def pointer_key(url: str) -> Key:
    """Return the key of the entry that names the issuer of the tokens for the server at `url`."""
    return "", canonical(url)


def registration_key(issuer: str) -> Key:
    """Return the key of the entry with the client's registration at an issuer."""
    return issuer, ""


async def bound_issuer(tokens: TokenStore, url: str, binding: str) -> str | None:
    """Return the issuer to which the credential named `binding` was presented for the server at `url`; None if it has
    not been presented to any. See `binding_of`."""
    pointer = await tokens.get(pointer_key(url))
    if pointer is None or pointer.get("binding") != binding:
        return None
    issuer = pointer.get("issuer")
    name = issuer.get("issuer") if isinstance(issuer, dict) else None
    return name if isinstance(name, str) else None


async def store_login(tokens: TokenStore, url: str, stored: StoredLogin, grant: Grant, *, with_secrets: bool) -> None:
    """Store a login to the server at `url`, obtained through `grant`. The secret of a client that the grant provides
    is stored only if `with_secrets` is true, and its private key is never stored. Raises `AuthError` if the store
    fails."""
    login, metadata = stored.login, stored.login.discovery.resource_metadata
    value: dict[str, Any] = {**stored.token.to_json(), "asked": sorted(stored.requested)}
    if login.proofs is not None:
        value["dpop_key"] = login.proofs.to_json()
    client = login.client
    if client is not None and (with_secrets or grant.client is None) and client.private_key is None:
        value |= client.to_json()
    elif client is not None:
        value["client_id"] = client.client_id
        if client.secret is not None or client.private_key is not None:
            value["is_confidential"] = True
    await tokens.put(login.key, value)
    pointer = {
        "issuer": login.discovery.issuer.model_dump(exclude_none=True),
        "resource": login.discovery.resource,
        "resource_metadata": metadata.model_dump(exclude_none=True) if metadata else None,
        "key": list(login.key),
        "binding": binding_of(grant)[0],
    }
    await tokens.put(pointer_key(url), pointer)


async def delete_expired(tokens: TokenStore, login: Login, token: Token) -> None:
    """Delete the entry of an expired token, unless another has replaced it. Raises `AuthError` if the store fails."""
    value = await tokens.get(login.key)
    # Another process may already have stored a valid token, which must not be deleted.
    if value is not None and value.get("refresh_token") == token.refresh:
        await tokens.delete(login.key)


async def read_login(
    tokens: TokenStore, url: str, client_information: ClientInformation | None, now: Callable[[], float]
) -> StoredLogin | None:
    """Return the stored login to the server at `url`; None if there is none, or if it belongs to a client other than
    `client_information`. Raises `AuthError` if the store can't be read."""
    pointer = await tokens.get(pointer_key(url))
    if pointer is None:
        return None
    try:
        issuer = IssuerMetadata.model_validate(pointer.get("issuer"))
        stored_metadata = pointer.get("resource_metadata")
        metadata = None if stored_metadata is None else ResourceMetadata.model_validate(stored_metadata)
    except ValidationError:
        raise AuthError("the stored login can't be read; log out and in again") from None
    resource = pointer.get("resource")
    key = (issuer.issuer, resource if isinstance(resource, str) else canonical(url))
    value = await tokens.get(key)
    if value is None:
        return None
    client_id, token = value.get("client_id"), Token.from_json(value)
    if client_information is not None and (
        client_information.client_id != client_id or client_information.issuer not in (None, issuer.issuer)
    ):
        return None
    client = client_information
    if client_information is None and isinstance(client_id, str):
        client = ClientInformation.from_json(value, issuer.issuer)
        if value.get("is_confidential"):
            token = replace(token, refresh=None)  # its secret is missing, so the issuer would refuse it
    discovered = Discovery(issuer, resource if isinstance(resource, str) else None, metadata)
    proofs = Proofs(now, value["dpop_key"]) if value.get("dpop_key") else None
    requested = value.get("asked")
    scopes = frozenset(map(str, requested)) if isinstance(requested, list) else frozenset()
    return StoredLogin(Login(discovered, client, key, proofs), token, scopes)
