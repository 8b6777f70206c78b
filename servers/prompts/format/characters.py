"""Characters that not every text can have, and how they are shown."""

__all__ = ["is_unicode", "line", "shown"]


def is_unicode(text: str) -> bool:
    """Whether it can be written as UTF-8: it can't where it has half of a surrogate pair, as Python has in place of
    what is no UTF-8 in the name of a file."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def shown(text: str) -> str:
    """The text on one line: control characters, and what is no Unicode, as escapes."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def line(text: str) -> str:
    """The same, with white space of any kind as single spaces."""
    return shown(" ".join(text.split()))
