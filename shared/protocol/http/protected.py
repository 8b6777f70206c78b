"""A server as a protected resource of OAuth 2.1, as far as its requests are concerned: plain data and words.

(RFC 9728; RFC 6750, section 3; RFC 9449, section 7.1; 2026-07-28, Authorization.)
"""

from collections.abc import Callable, Collection, Sequence

from ..records import record

WELL_KNOWN = "/.well-known/oauth-protected-resource"
"""Before the path of a resource: where its metadata is (RFC 9728, section 3.1)."""


def challenge(scheme: str = "Bearer", **said: str | None) -> str:
    """A challenge of these parameters, but for those that are None. They have neither quotes nor backslashes (RFC
    9110, section 11.6.1)."""
    parameters = ", ".join(f'{name}="{value}"' for name, value in said.items() if value is not None)
    return f"{scheme} {parameters}".rstrip()


@record
class ProtectedResource:
    """What tokens are for, and who is told where to get one."""

    uri: str
    """Its canonical URI, which `aud` has to name (RFC 8707, section 2)."""
    metadata_url: str
    """Where it says who issues tokens."""
    audiences: frozenset[str]
    """The URIs of which a token has to name one: all at which the same server answers, or where there is none, those
    of all servers beside it."""
    scopes: Callable[[], Sequence[str]]
    """The scopes that are worth asking for at first."""

    def challenge(
        self,
        error: str | None = None,
        description: str | None = None,
        *,
        scheme: str = "Bearer",
        scope: Collection[str] | None = None,
        algorithms: Sequence[str] = (),
    ) -> str:
        """What the WWW-Authenticate header says to whoever may not use it: because of `error`, and with which `scope`
        he might, in place of those of first need."""
        needed = self.scopes() if scope is None else scope
        return challenge(
            scheme,
            error=error,
            error_description=description,
            resource_metadata=self.metadata_url,
            scope=" ".join(needed) or None,
            algs=" ".join(algorithms) or None,
        )
