"""The extensions of a server that enforce the rules of its operator."""

from typing import Any

from ..auth.policy import Policy, Rules
from ..server.extension import Extension


def rule_extensions(rules: Rules, name: str, *, tokens_have_scopes: bool) -> list[Extension[Any]]:
    """Return the extensions for the server called `name`; empty if there are no rules."""
    extensions: list[Extension[Any]] = []
    if rules.narrowed_settings:
        from ..extensions.narrowing import narrowing

        extensions.append(narrowing(rules.narrowed_settings))
    if rules or tokens_have_scopes:
        from ..extensions.access import access

        extensions.append(access(Policy(name, rules)))
    return extensions
