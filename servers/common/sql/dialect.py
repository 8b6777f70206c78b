"""How one kind of database differs in texts for clients: its name, its terms, and its parameter syntax.

The tools, the resources and the prompt are declared once, in `features`. Where engines use different terms, a
docstring contains a placeholder in braces, which `words` replaces.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from .canned import FindParameters
from .uris import Uris

F = TypeVar("F", bound=Callable[..., Any])


class Dialect(NamedTuple):
    """One kind of database."""

    uris: Uris
    """The URIs of its resources. Their scheme is also the server's name."""
    title: str
    """The display name."""
    find_parameters: FindParameters
    split_statements: Callable[[str], Sequence[str]]
    """Splits a script into statements like the database. Raises SqlError."""
    parameters: str
    """The description of the argument `parameters`."""
    read_only: str
    """The reason why nothing can be changed, if no database is writable."""
    words: Mapping[str, str]
    """The texts for the placeholders in docstrings of `features`, by name."""
    reads_at_once: bool = False
    """True if `Database.read_at_once` may return rows; otherwise it is not called before a call is scheduled."""

    @property
    def name(self) -> str:
        """The name of the server, which is also the logger of its log messages."""
        return self.uris.scheme

    @property
    def query(self) -> str:
        """The description of the argument `query`."""
        return f"one statement in {self.title}'s SQL"

    @property
    def result_app(self) -> str:
        """The URI of the app page that shows rows."""
        return f"ui://{self.name}/result"

    @property
    def schema_app(self) -> str:
        """The URI of the app page that shows a database."""
        return f"ui://{self.name}/schema"

    def fill_words(self, function: F) -> F:
        """Replace the placeholders in the docstring of `function`, which is its description for clients."""
        function.__doc__ = (function.__doc__ or "").format_map(self.words)
        return function
