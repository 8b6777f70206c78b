"""What a program adds to a server so that it keeps to the rules of its operator."""

from typing import Any

from ..auth.policy import Policy, Rules
from ..extensions.access import access
from ..extensions.narrowing import narrowing
from ..server.extension import Extension


def keeping_to(rules: Rules, name: str, *, tokens_have_scopes: bool) -> list[Extension[Any]]:
    """What the server called `name` is opened with; nothing where there is nothing to keep to."""
    extensions = [narrowing(rules.narrowed)] if rules.narrowed else []
    if rules or tokens_have_scopes:
        extensions.append(access(Policy(name, rules)))
    return extensions
