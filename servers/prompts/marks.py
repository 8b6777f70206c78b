"""What files of the library say, between two lines with a mark that nobody can know beforehand: a file can't end them
and go on as if the server spoke."""

import secrets

__all__ = ["marks"]


def marks(said: str) -> tuple[str, str]:
    """The line before the words of files, which has what is `said` of them, and the line after."""
    mark = f"library-{secrets.token_hex(4)}"
    return f"<{mark}> {said}:", f"</{mark}>"
