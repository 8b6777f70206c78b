"""What texts can hold, and how those that others wrote stand in ours."""

__all__ = ["escape", "is_unicode", "join_lines"]


def is_unicode(text: str) -> bool:
    """Whether it can be written as UTF-8: it can't where it has half of a surrogate pair, as Python has in place of
    what is no UTF-8 in the name of a file."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def escape(text: str) -> str:
    """The text on one line: what is not printed, line ends and what a terminal obeys among it, as escapes."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def join_lines(text: str) -> str:
    """The text on one line: white space of any kind as single spaces, and the rest as by `escape`."""
    return escape(" ".join(text.split()))
