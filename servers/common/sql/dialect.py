"""What clients are told of one kind of database, as data: its name, its words, and how it writes parameters.

The tools, resources and the prompt are declared once, in `features`. Where the words of engines differ, a docstring
has a name in braces, which `words` fills.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from .canned import FindParameters
from .uris import Uris

F = TypeVar("F", bound=Callable[..., Any])


class Dialect(NamedTuple):
    """One kind of database."""

    uris: Uris
    """Of its resources; their scheme is the name of the server, too."""
    title: str
    """As people write it."""
    find_parameters: FindParameters
    split_statements: Callable[[str], Sequence[str]]
    """The statements of a script, as the database cuts it. Raises SqlError."""
    parameters: str
    """Description of the parameters of a statement."""
    read_only: str
    """Why nothing can be changed, where no database may be."""
    words: Mapping[str, str]
    """What docstrings in `features` have in braces."""
    reads_at_once: bool = False
    """Whether `Database.read_at_once` may have rows: else it is not asked before a call is scheduled."""

    @property
    def name(self) -> str:
        """The name of its server, and of who speaks in log messages."""
        return self.uris.scheme

    @property
    def query(self) -> str:
        """Description of a statement."""
        return f"one statement in {self.title}'s SQL"

    @property
    def result_app(self) -> str:
        """The page that shows rows."""
        return f"ui://{self.name}/result"

    @property
    def schema_app(self) -> str:
        """The page that shows a database."""
        return f"ui://{self.name}/schema"

    def fill_words(self, function: F) -> F:
        """Put the words into the docstring of `function`, which is what clients are told of it."""
        function.__doc__ = (function.__doc__ or "").format_map(self.words)
        return function
