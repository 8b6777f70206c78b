"""Creates names for objects that a process keeps for later calls: the rows after a cursor, or the file of an export.

These objects can't leave their process. If a server has several replicas, a later call may reach another replica. It
has to tell the name of an object at another replica from a name that never existed. So each name begins with a mark
of the process that created it.
"""

import os
import re
from base64 import urlsafe_b64encode

from .errors import SqlError

_MARK_BYTES, _SECRET_BYTES = 3, 9
"""Numbers of random bytes: for the mark, which has four base64 characters, and for the twelve that can't be
guessed."""
_NAME = re.compile(r"[\w-]{16}", re.ASCII)


class ProcessNames:
    """Creates names, and recognizes names from other processes."""

    def __init__(self) -> None:
        self._mark = _random_text(_MARK_BYTES)

    def new(self) -> str:
        """Return a name that can't be guessed."""
        return self._mark + _random_text(_SECRET_BYTES)

    def require_local(self, name: str, subject: str, suggestion: str) -> None:
        """Raise SqlError with code `elsewhere` and the `suggestion` if another process created `name`. `subject` is
        the kind of the named object, for the text of the error."""
        if _NAME.fullmatch(name) and not name.startswith(self._mark):
            reason = (
                f"{subject} is available only from the server process that created it, and this is a different one"
            )
            raise SqlError("elsewhere", reason, suggestion)


def _random_text(size: int) -> str:
    # This does the same as `secrets.token_urlsafe`, but importing `secrets` would load OpenSSL.
    return urlsafe_b64encode(os.urandom(size)).decode()
