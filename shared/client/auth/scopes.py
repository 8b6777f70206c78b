"""Which scopes a client asks for (2026-07-28, Authorization, Scope Selection Strategy)."""

from collections.abc import Collection

from ...auth.metadata import IssuerMetadata

__all__ = ["OFFLINE", "choose_scopes"]

OFFLINE = "offline_access"
"""Asks for a token by which others are had later; not every authorization server knows it."""


def choose_scopes(
    challenged: Collection[str],
    supported: Collection[str] | None,
    before: Collection[str],
    issuer: IssuerMetadata,
    *,
    lasting: bool,
) -> frozenset[str]:
    """What the server asks for, else all that it supports, with what was asked for `before`: a token for one thing
    must not lose another. None at all where nobody says anything. `lasting` where a person would have to log in
    again."""
    chosen = frozenset(challenged or (supported or ())) | frozenset(before)
    known = issuer.scopes_supported or ()
    if OFFLINE in chosen and OFFLINE not in known:
        chosen -= {OFFLINE}
    if lasting and OFFLINE in known:
        chosen |= {OFFLINE}
    return chosen
