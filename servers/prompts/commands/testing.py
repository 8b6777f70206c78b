"""`test`: prompts and their golden examples."""

from collections import Counter
from collections.abc import Sequence
from difflib import unified_diff
from pathlib import Path

from servers.prompts import golden
from servers.prompts.commands.output import failed, opened, say
from servers.prompts.errors import PromptError
from servers.prompts.library.folder import Folder
from servers.prompts.library.library import Library
from servers.prompts.writing.files import put

__all__ = ["test"]


def test(roots: Sequence[Path], update: bool) -> int:
    """Prints how what comes differs from the examples, or with `update` makes it the examples; 1 where one fails."""
    outcomes: Counter[str] = Counter()
    for root in roots:
        library = opened(root)
        for name in library.names:
            outcomes[_outcome(library, name, root, update)] += 1
    order = ("passed", "failed", "updated", "without an example")
    say(", ".join(f"{outcomes[one]} {one}" for one in order if outcomes[one] or one in order[:2]))
    return 1 if outcomes["failed"] else 0


def _outcome(library: Library, name: str, root: Path, update: bool) -> str:
    path = library.path(name)
    try:
        expected = golden.golden(library, name)
        if expected is None:
            library.prompt(name)
            return "without an example"
        now = golden.example(library, name, expected.arguments)
        if now == expected:
            return "passed"
        if update:
            put(Folder(root), golden.golden_path(path), golden.written(now).encode(), lambda _: None)
    except PromptError as error:
        failed(root, path, error)
        return "failed"
    path = str(root / golden.golden_path(path))
    if update:
        say(f"{path}: updated")
        return "updated"
    _show(path, expected, now)
    return "failed"


def _show(path: str, expected: golden.Golden, now: golden.Golden) -> None:
    before, after = (golden.written(one).splitlines() for one in (expected, now))
    say(f"{path}: something else comes")
    for line in unified_diff(before, after, "expected", "now", lineterm=""):
        say(line)
