"""The responses of a server that is an OAuth 2.1 protected resource, as plain data and text.

(RFC 9728; RFC 6750, section 3; RFC 9449, section 7.1; 2026-07-28, Authorization.)
"""

from collections.abc import Callable, Collection, Sequence

from ..records import record

WELL_KNOWN = "/.well-known/oauth-protected-resource"
"""The prefix that turns the path of a resource into the path of its metadata (RFC 9728, section 3.1)."""


def challenge(scheme: str = "Bearer", **fields: str | None) -> str:
    """Return a challenge with these parameters, except those that are None. The values contain neither quotes nor
    backslashes (RFC 9110, section 11.6.1)."""
    parameters = ", ".join(f'{name}="{value}"' for name, value in fields.items() if value is not None)
    return f"{scheme} {parameters}".rstrip()


@record
class ProtectedResource:
    """The resource for which tokens are issued, with hints for obtaining a token."""

    uri: str
    """Its canonical URI, which `aud` must contain (RFC 8707, section 2)."""
    metadata_url: str
    """The URL of its metadata, which lists the issuers of tokens."""
    audiences: frozenset[str]
    """The accepted audiences, one of which a token must contain. They are the URIs of the same server, or for a
    resource without a server, the URIs of all servers on the listener."""
    scopes: Callable[[], Sequence[str]]
    """The scopes to request first."""

    def challenge(
        self,
        error: str | None = None,
        description: str | None = None,
        *,
        scheme: str = "Bearer",
        scope: Collection[str] | None = None,
        algorithms: Sequence[str] = (),
    ) -> str:
        """Return the value of the WWW-Authenticate header for a refused request: because of `error`, and with the
        required `scope` instead of the first scopes."""
        needed = self.scopes() if scope is None else scope
        return challenge(
            scheme,
            error=error,
            error_description=description,
            resource_metadata=self.metadata_url,
            scope=" ".join(needed) or None,
            algs=" ".join(algorithms) or None,
        )
