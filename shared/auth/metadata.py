"""Metadata documents of authorization servers and protected resources, and the URLs at which they are found.

(RFC 8414, RFC 9728, OpenID Connect Discovery 1.0; 2026-07-28, Authorization, Authorization Server Discovery.)
"""

from typing import Any, TypeVar
from urllib.parse import SplitResult, urlsplit, urlunsplit

from pydantic import BaseModel, ValidationError

from ..errors import AuthError
from ..text import escape

Document = TypeVar("Document", bound=BaseModel)

_PORTS = {"https": 443, "http": 80}


class MetadataError(AuthError):
    """Raised for a document that must not be used; the text gives the reason."""


class ResourceMetadata(BaseModel):
    """The metadata of a protected resource (RFC 9728, section 2)."""

    resource: str
    authorization_servers: list[str] = []
    scopes_supported: list[str] | None = None
    bearer_methods_supported: list[str] | None = None
    resource_name: str | None = None
    dpop_signing_alg_values_supported: list[str] | None = None
    dpop_bound_access_tokens_required: bool | None = None


class IssuerMetadata(BaseModel):
    """The metadata of an authorization server (RFC 8414, section 2)."""

    issuer: str
    authorization_endpoint: str | None = None
    token_endpoint: str | None = None
    registration_endpoint: str | None = None
    introspection_endpoint: str | None = None
    revocation_endpoint: str | None = None
    jwks_uri: str | None = None
    scopes_supported: list[str] | None = None
    grant_types_supported: list[str] | None = None
    response_types_supported: list[str] | None = None
    code_challenge_methods_supported: list[str] | None = None
    token_endpoint_auth_methods_supported: list[str] | None = None
    token_endpoint_auth_signing_alg_values_supported: list[str] | None = None
    dpop_signing_alg_values_supported: list[str] | None = None
    client_id_metadata_document_supported: bool = False
    authorization_response_iss_parameter_supported: bool = False


def resource_metadata_urls(url: str) -> tuple[str, ...]:
    """Return the URLs for the metadata of the protected resource at `url`, in the order to try (RFC 9728, section
    3.1). Raises `MetadataError` if the text is not a URL."""
    parts = _split(url, "a protected resource")
    origin = f"{parts.scheme}://{parts.netloc}"
    path = parts.path.rstrip("/")
    root = f"{origin}/.well-known/oauth-protected-resource"
    # The path of the server follows the well-known part (RFC 9728, section 3.1). A server with an origin of its own
    # may have the document only at the root.
    return (f"{root}{path}", root) if path else (root,)


def issuer_metadata_urls(issuer: str) -> tuple[str, ...]:
    """Return the URLs for the metadata of `issuer`, in the order to try (2026-07-28, Authorization Server Discovery).
    Raises `MetadataError` if the text is not a URL."""
    parts = _split(issuer, "an authorization server")
    origin = f"{parts.scheme}://{parts.netloc}"
    path = parts.path.rstrip("/")
    oauth, openid = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
    if not path:
        return (f"{origin}{oauth}", f"{origin}{openid}")
    # RFC 8414, section 3.1, inserts the well-known part before the path of the issuer; OpenID Connect appends it.
    # Issuers do either.
    return (f"{origin}{oauth}{path}", f"{origin}{openid}{path}", f"{origin}{path}{openid}")


def read_issuer_metadata(document: Any, issuer: str) -> IssuerMetadata:
    """Return the metadata of `issuer` in a document. Raises `MetadataError` if the document is invalid, or belongs to
    another issuer (RFC 8414, section 3.3)."""
    metadata = _read(IssuerMetadata, document, "an authorization server")
    if not is_same_issuer(metadata.issuer, issuer):
        raise MetadataError(f"the metadata at the URL of the issuer {escape(issuer)[:300]} belongs to another issuer")
    return metadata


def is_same_issuer(issuer: str, other: str) -> bool:
    """Return True if two identifiers are equal character by character, or if both are the root of the same origin and
    only one of them ends in a slash: such URLs are equivalent (RFC 3986, section 6.2.3)."""
    # Servers and their issuers often write the root differently: servers made with pydantic add the slash, and Google
    # names its issuer with it in the metadata of servers, and without it in that of the issuer.
    shorter, longer = sorted((issuer, other), key=len)
    return shorter == longer or (longer == f"{shorter}/" and shorter.count("/") == 2)


def read_resource_metadata(document: Any, url: str) -> ResourceMetadata:
    """Return the metadata, in a document, of the protected resource to which `url` belongs. Raises `MetadataError` if
    the document is invalid, or belongs to another resource (RFC 9728, section 3.3)."""
    metadata = _read(ResourceMetadata, document, "a protected resource")
    if not covers(metadata.resource, url):
        parts = _split(url, "a protected resource")
        location = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"  # a query may be a secret
        raise MetadataError(f"the metadata found for {location} belongs to another resource")
    return metadata


def _read(model: type[Document], document: Any, owner: str) -> Document:
    try:
        return model.model_validate(document)
    except ValidationError as error:
        fault = error.errors(include_input=False, include_url=False)[0]
        location = ".".join(map(str, fault["loc"])) or "all of it"
        raise MetadataError(f"the metadata of {owner} is not valid: {location}: {fault['msg']}") from None


def _split(url: str, owner: str) -> SplitResult:
    fault = MetadataError(f"the address given for {owner} is not a URL")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise fault from None
    # `urlsplit` silently removes some characters that are not allowed in a URL.
    if not parts.scheme or not parts.hostname or port == 0 or not url.isprintable() or " " in url:
        raise fault
    return parts


def canonical(uri: str) -> str:
    """Return `uri` in the form in which resources are compared: scheme and host in lower case, without the default
    port, the fragment and a slash at the end (2026-07-28, Authorization, Canonical Server URI). A string that is not
    a URI with a host is returned unchanged."""
    try:
        parts = urlsplit(uri)
        port = parts.port
    except ValueError:
        return uri
    scheme, host = parts.scheme.lower(), parts.hostname or ""
    if not host:
        return uri
    netloc = f"[{host}]" if ":" in host else host
    if port is not None and port != _PORTS.get(scheme):
        netloc += f":{port}"
    user = parts.netloc.rpartition("@")[0]
    if user:
        netloc = f"{user}@{netloc}"
    return urlunsplit((scheme, netloc, parts.path.removesuffix("/"), parts.query, ""))


def covers(resource: str, url: str) -> bool:
    """Return True if `url` is `resource` or is below it; False if either is not a URI."""
    try:
        base, inner = urlsplit(canonical(resource)), urlsplit(canonical(url))
    except ValueError:
        return False
    if (base.scheme, base.netloc) != (inner.scheme, inner.netloc) or not base.netloc:
        return False
    if base.query and base.query != inner.query:
        return False
    # The slash is needed because `/mcp2` is not below `/mcp`.
    return inner.path == base.path or inner.path.startswith(f"{base.path}/")
