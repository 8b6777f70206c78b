"""What is said where an extra is missing."""

__all__ = ["needs_extra"]


def needs_extra(extra: str) -> str:
    """Says that an extra is missing here, and names the command that adds it."""
    from .installation import this_installation

    return f"it needs the extra {extra!r}: {this_installation().line(extra)}"
