"""What is kept of a login from one program to the next, as a `TokenStore` has it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from ...auth.metadata import IssuerMetadata, ResourceMetadata, canonical
from ...errors import AuthError
from ...protocol.records import record
from .discovery import Found
from .grants import Grant, binding_of
from .proofs import Proofs
from .registration import ClientInformation
from .tokens import Key, Token, TokenStore


@record
class Login:
    """Who issues tokens for a server, and what was agreed with them."""

    found: Found
    client: ClientInformation | None
    key: Key
    proofs: Proofs | None


@record
class Kept:
    """What a store has of a login."""

    login: Login
    token: Token
    asked: frozenset[str]
    """The scopes that were asked for, whatever was granted."""


def pointer_key(url: str) -> Key:
    """Where it is kept who issued the tokens for the server at `url`."""
    return "", canonical(url)


def registration_key(issuer: str) -> Key:
    """Where it is kept as whom an issuer knows the client."""
    return issuer, ""


async def bound_issuer(tokens: TokenStore, url: str, binding: str) -> str | None:
    """The one issuer that was shown what is called `binding`, for the server at `url`; None where none was."""
    pointer = await tokens.get(pointer_key(url))
    if pointer is None or pointer.get("binding") != binding:
        return None
    issuer = pointer.get("issuer")
    told = issuer.get("issuer") if isinstance(issuer, dict) else None
    return told if isinstance(told, str) else None


async def keep(tokens: TokenStore, url: str, kept: Kept, grant: Grant, *, whole: bool) -> None:
    """Keeps a login to the server at `url` by `grant`; a client that this has brought without its secrets, or else
    `whole`. Raises `AuthError` where the store can't."""
    login, told = kept.login, kept.login.found.resource_metadata
    value: dict[str, Any] = {**kept.token.to_json(), "asked": sorted(kept.asked)}
    if login.proofs is not None:
        value["dpop_key"] = login.proofs.to_json()
    if login.client is not None:
        value |= _known(login.client, whole=whole or grant.client is None)
    await tokens.put(login.key, value)
    pointer = {
        "issuer": login.found.issuer.model_dump(exclude_none=True),
        "resource": login.found.resource,
        "resource_metadata": told.model_dump(exclude_none=True) if told else None,
        "key": list(login.key),
        "binding": binding_of(grant)[0],
    }
    await tokens.put(pointer_key(url), pointer)


def _known(client: ClientInformation, *, whole: bool) -> dict[str, Any]:
    """What is kept of a client. The others are told where something is missing of it."""
    if whole and client.private_key is None:
        return client.to_json()
    has_secrets = client.secret is not None or client.private_key is not None
    return {"client_id": client.client_id, **({"is_confidential": True} if has_secrets else {})}


async def forget(tokens: TokenStore, login: Login, token: Token) -> None:
    """Forgets a token that is over, unless there is another one by now. Raises `AuthError` where the store can't."""
    value = await tokens.get(login.key)
    # Another process may have put a good one there since: it must not be lost with the one that is over.
    if value is not None and value.get("refresh_token") == token.refresh:
        await tokens.delete(login.key)


async def read_kept(
    tokens: TokenStore, url: str, given: ClientInformation | None, now: Callable[[], float]
) -> Kept | None:
    """What was kept of a login to the server at `url`; None where it was not, or was that of another client than
    the one that is `given`. Raises `AuthError` for what can't be read."""
    pointer = await tokens.get(pointer_key(url))
    if pointer is None:
        return None
    try:
        issuer = IssuerMetadata.model_validate(pointer.get("issuer"))
        told = pointer.get("resource_metadata")
        metadata = None if told is None else ResourceMetadata.model_validate(told)
    except ValidationError:
        raise AuthError("the stored login can't be read; log out and in again") from None
    resource = pointer.get("resource")
    key = (issuer.issuer, resource if isinstance(resource, str) else canonical(url))
    value = await tokens.get(key)
    if value is None:
        return None
    client_id, token = value.get("client_id"), Token.from_json(value)
    if given is not None and (given.client_id != client_id or given.issuer not in (None, issuer.issuer)):
        return None
    client = given
    if given is None and isinstance(client_id, str):
        client = ClientInformation.from_json(value, issuer.issuer)
        if value.get("is_confidential"):
            token = replace(token, refresh=None)  # without the secret the issuer would refuse it, for good
    found = Found(issuer, resource if isinstance(resource, str) else None, metadata)
    proofs = Proofs(now, value["dpop_key"]) if value.get("dpop_key") else None
    asked = value.get("asked")
    scopes = frozenset(map(str, asked)) if isinstance(asked, list) else frozenset()
    return Kept(Login(found, client, key, proofs), token, scopes)
