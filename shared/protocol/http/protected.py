"""OAuth 2.1 protected resources: which tokens they accept, and the challenges in their responses.

(RFC 9728; RFC 6750, section 3; RFC 9449, section 7.1; 2026-07-28, Authorization.)
"""

from collections.abc import Callable, Collection, Sequence

from ..records import record

WELL_KNOWN = "/.well-known/oauth-protected-resource"
"""The prefix of a resource's path that yields the path of its metadata (RFC 9728, section 3.1)."""


def challenge(scheme: str = "Bearer", **fields: str | None) -> str:
    """Return a challenge with these parameters, except those that are None. Their values must not contain quotes or
    backslashes (RFC 9110, section 11.6.1)."""
    parameters = ", ".join(f'{name}="{value}"' for name, value in fields.items() if value is not None)
    return f"{scheme} {parameters}".rstrip()


@record
class ProtectedResource:
    """A resource for which tokens are issued, and what a client needs to obtain one."""

    uri: str
    """Its canonical URI (RFC 8707, section 2), for which a client requests a token."""
    metadata_url: str
    """The URL of its metadata, which lists the issuers of tokens."""
    audiences: frozenset[str]
    """The accepted values of a token's `aud`. They are the URIs of the resource's server or, if the resource is not
    one server, the URIs of all servers on the listener."""
    scopes: Callable[[], Sequence[str]]
    """Returns the scopes that a client should request if it has no token yet."""

    def challenge(
        self,
        error: str | None = None,
        description: str | None = None,
        *,
        scheme: str = "Bearer",
        scope: Collection[str] | None = None,
        algorithms: Sequence[str] = (),
    ) -> str:
        """Return the value of the WWW-Authenticate header for a refused request. `error` and `description` are the
        reason, if the request had a token. `scope` is the needed scopes, by default those of `scopes`."""
        needed = self.scopes() if scope is None else scope
        return challenge(
            scheme,
            error=error,
            error_description=description,
            resource_metadata=self.metadata_url,
            scope=" ".join(needed) or None,
            algs=" ".join(algorithms) or None,
        )
