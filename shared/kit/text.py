"""What texts can hold."""

__all__ = ["is_unicode"]


def is_unicode(text: str) -> bool:
    """Whether it can be written as UTF-8: it can't where it has half of a surrogate pair, as Python has in place of
    what is no UTF-8 in the name of a file."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
