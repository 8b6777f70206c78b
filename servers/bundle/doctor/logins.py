"""Checks of the token issuers of a server at a URL. The libraries that this needs are an extra, without which the
doctor must still work.
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


async def check_logins(where: str, shown_url: str, url: str) -> Finding | None:
    """Return a finding about the login at the server at `url`, which requires a token. None if the server does not
    name its issuers, or if the library is missing. `shown_url` is the URL in messages."""
    if find_spec("httpx") is None:
        return None
    from shared.auth.web import Web

    web = Web()
    try:
        resource = await _first_document(
            web, resource_metadata_urls(url), lambda document: read_resource_metadata(document, url), None
        )
    except AuthError as error:
        return fault(
            where, f"the metadata of {shown_url} can't be used: {error}", "correct its --public-url, or wait"
        )
    if resource is None or not resource.authorization_servers:
        return None
    issuer = resource.authorization_servers[0]
    try:
        metadata = await _first_document(
            web, issuer_metadata_urls(issuer), lambda document: read_issuer_metadata(document, issuer), url
        )
    except AuthError as error:
        return fault(
            where, f"{shown_url} requires a login at {issuer}, but {error}", "correct its --auth-issuer, or wait"
        )
    if metadata is None:
        what = f"{shown_url} requires a login at {issuer}, which returned no metadata at its well-known URLs"
        return fault(where, what, "correct its --auth-issuer, or wait")
    return fine(where, f"{shown_url} requires a login at {issuer}, which is available; the client will ask for it")


async def _first_document(
    web: Any, urls: Sequence[str], read: Callable[[Any], Read], resource_url: str | None
) -> Read | None:
    """Return the first document at one of the URLs, as `read` returns it; None if there is none. `resource_url` is
    the URL of the document that names these URLs, if any. Raises AuthError if a request fails or a document is
    invalid."""
    for url in urls:
        answer = await web.get_json(url, referrer=resource_url)
        if answer.status == 200 and answer.document is not None:
            return read(answer.document)
    return None
