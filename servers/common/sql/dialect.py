"""Describes how database engines differ in texts for clients: their names, terms, and syntax of parameters.

The tools, the resources and the prompt are declared once, in `features`, for all engines. Where engines use different
terms, a docstring contains a placeholder in braces. `Dialect.words` has the text that replaces it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from .canned import FindParameters
from .uris import Uris

F = TypeVar("F", bound=Callable[..., Any])


class Dialect(NamedTuple):
    """What differs in texts for clients of one database engine."""

    uris: Uris
    """The URIs of the server's resources. Their scheme is also the name of the server."""
    title: str
    """The name of the engine as it is displayed, such as SQLite."""
    find_parameters: FindParameters
    split_statements: Callable[[str], Sequence[str]]
    """Splits a script into statements as the database does. Raises SqlError."""
    parameters: str
    """The description of the argument `parameters`."""
    read_only: str
    """The reason why tools that change databases are not offered if no database is writable."""
    words: Mapping[str, str]
    """The texts for the placeholders in docstrings of `features`, by name."""
    reads_at_once: bool = False
    """True if `Database.read_at_once` may return rows, so that it is worth calling before a call is scheduled."""

    @property
    def name(self) -> str:
        """The name of the server. It is also the logger name in messages that clients get."""
        return self.uris.scheme

    @property
    def query(self) -> str:
        """The description of the tool argument `query`."""
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
        """Replace the placeholders in the docstring of a tool's `function`, which clients get as its description."""
        function.__doc__ = (function.__doc__ or "").format_map(self.words)
        return function
