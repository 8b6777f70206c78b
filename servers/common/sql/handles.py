"""Names of objects that a process keeps for later calls: the rows after a cursor, or the file of an export.

These objects can't leave their process. If a server has several replicas, a later call may reach another one, which
has to distinguish another replica's name from one that never existed. So each name begins with a mark of the process
that created it.
"""

import os
import re
from base64 import urlsafe_b64encode

from servers.common.sql.errors import SqlError

_MARK_BYTES, _SECRET_BYTES = 3, 9
"""Four base64 characters for the mark, and twelve that can't be guessed."""
_NAME = re.compile(r"[\w-]{16}", re.ASCII)


class ProcessNames:
    """Creates names, and recognizes names from other processes."""

    def __init__(self) -> None:
        self._mark = _random_text(_MARK_BYTES)

    def new(self) -> str:
        """Return a name that can't be guessed."""
        return self._mark + _random_text(_SECRET_BYTES)

    def check_here(self, name: str, what: str, suggestion: str) -> None:
        """Raise SqlError with code `elsewhere` and a `suggestion` if the `name` of `what` was created by another
        process."""
        if _NAME.fullmatch(name) and not name.startswith(self._mark):
            reason = f"{what} is available only from the server process that created it, and this is a different one"
            raise SqlError("elsewhere", reason, suggestion)


def _random_text(size: int) -> str:
    # Equivalent to `secrets`, which would load OpenSSL.
    return urlsafe_b64encode(os.urandom(size)).decode()
