"""Characters that not every text can have, as they are shown."""

__all__ = ["line", "shown"]


def shown(text: str) -> str:
    """The text on one line: control characters, and what is no Unicode, as escapes."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def line(text: str) -> str:
    """The same, with white space of any kind as single spaces."""
    return shown(" ".join(text.split()))
