"""Names of objects that a process keeps for later calls: the rows behind a cursor, the file of an export.

Neither can leave its process. If a server has several replicas, a later call may reach another one, which has to tell
a name that never existed from one of another replica: so each name begins with a mark of the process that made it.
"""

import os
import re
from base64 import urlsafe_b64encode

from servers.common.sql.errors import SqlError

_MARK_BYTES, _SECRET_BYTES = 3, 9
"""In base64 the four characters of the mark, and twelve that nobody can guess."""
_NAME = re.compile(r"[\w-]{16}", re.ASCII)


class ProcessNames:
    """Makes names, and recognizes those of other processes."""

    def __init__(self) -> None:
        self._mark = _draw(_MARK_BYTES)

    def new(self) -> str:
        """Return a name that can't be guessed."""
        return self._mark + _draw(_SECRET_BYTES)

    def check_here(self, name: str, what: str, suggestion: str) -> None:
        """Raise SqlError `elsewhere`, with a `suggestion`, if the `name` of `what` was made by another process."""
        if _NAME.fullmatch(name) and not name.startswith(self._mark):
            reason = f"{what} is available only from the server process that created it, and this is another one"
            raise SqlError("elsewhere", reason, suggestion)


def _draw(size: int) -> str:
    # The same as `secrets` gives, but that loads OpenSSL.
    return urlsafe_b64encode(os.urandom(size)).decode()
