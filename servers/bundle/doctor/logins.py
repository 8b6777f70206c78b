"""Who issues tokens for a server at a URL, and can they be reached?

The libraries for that are an extra, and a doctor has to work where they are missing.
"""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any, TypeVar

from shared.auth.metadata import (
    issuer_metadata_urls,
    read_issuer_metadata,
    read_resource_metadata,
    resource_metadata_urls,
)
from shared.errors import AuthError

from .findings import Finding, fault, fine

Read = TypeVar("Read")


async def check_logins(where: str, place: str, url: str) -> Finding | None:
    """What can be said of where to log in for the server at `url`, which wants a token; None where it does not say
    who issues them, or nothing here can ask. `place` is what the URL is called."""
    if find_spec("httpx") is None:
        return None
    from shared.auth.web import Web

    web = Web()
    try:
        found = await _first(web, resource_metadata_urls(url), lambda said: read_resource_metadata(said, url), None)
    except AuthError as error:
        return fault(where, f"{place} does not say who issues its tokens: {error}", "correct its --public-url")
    if found is None or not found.authorization_servers:
        return None
    issuer = found.authorization_servers[0]
    try:
        known = await _first(web, issuer_metadata_urls(issuer), lambda said: read_issuer_metadata(said, issuer), url)
    except AuthError as error:
        return fault(where, f"{place} wants a login at {issuer}, but {error}", "correct its --auth-issuer, or wait")
    if known is None:
        what = f"{place} wants a login at {issuer}, which has no metadata at its well-known URLs"
        return fault(where, what, "correct the --auth-issuer of the server")
    return fine(where, f"{place} wants a login at {issuer}, which is there; the client asks for it")


async def _first(web: Any, urls: Sequence[str], read: Callable[[Any], Read], near: str | None) -> Read | None:
    """What the first of these says that says anything. Raises AuthError for what is wrong, or can't be asked."""
    for url in urls:
        answer = await web.get_json(url, near=near)
        if answer.status == 200 and answer.document is not None:
            return read(answer.document)
    return None
