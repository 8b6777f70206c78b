"""Names of what a process holds for later calls: the rows behind a cursor, the file of an export.

Neither can leave its process. Where a server has several replicas, a later call may come to another one, which has to
tell what was never there from what is not here: so each name begins with a mark of who has made it.
"""

import os
import re
from base64 import urlsafe_b64encode

from servers.common.sql.errors import SqlError

_MARK_BYTES, _SECRET_BYTES = 3, 9
"""In base64 the four characters of the mark, and twelve that nobody can guess."""
_NAME = re.compile(r"[\w-]{16}", re.ASCII)


class HeldNames:
    """Makes names, and knows those that others have made."""

    def __init__(self) -> None:
        self._mark = _draw(_MARK_BYTES)

    def new(self) -> str:
        """A name that can't be guessed."""
        return self._mark + _draw(_SECRET_BYTES)

    def check_here(self, name: str, what: str, suggestion: str) -> None:
        """Raises SqlError `elsewhere`, with a `suggestion`, where `what` is called so is not this process's."""
        if _NAME.fullmatch(name) and not name.startswith(self._mark):
            reason = f"{what} can be had only from the process of this server that made it, and this is another one"
            raise SqlError("elsewhere", reason, suggestion)


def _draw(size: int) -> str:
    # What `secrets` would give, which loads OpenSSL.
    return urlsafe_b64encode(os.urandom(size)).decode()
