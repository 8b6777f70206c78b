"""Implements the commands `lint`, `render`, `test` and `export`, which use a library without serving it.

Each function returns the exit code: 0 for success, 1 for findings or failures.
"""

import json
import sys
from collections import Counter
from collections.abc import Sequence
from difflib import unified_diff
from pathlib import Path
from typing import NamedTuple

from shared.text import format_count

from ..arguments import parse_values
from ..errors import Problem, PromptError
from ..library.folder import Folder
from ..library.library import Library
from ..library.lint import estimate_tokens
from ..library.lint import lint as lint_library
from ..templates.rendering import Text
from ..write.files import allow_any_contents, find_differing, put, write_skill
from . import golden


class UsageError(Exception):
    """Raised if a command can't be carried out because of its arguments. The text is the reason."""


def open_library(root: Path) -> Library:
    """Open the library in a folder. Raises UsageError if it has no prompts, since it is probably the wrong folder."""
    library = Library(root)
    library.scan()
    if not library.names and not library.problems():
        raise UsageError(f"there is no prompt in {root}")
    return library


def print_line(line: str) -> None:
    """Print a line. Characters that the output's encoding lacks are escaped. Raises BrokenPipeError."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(f"{line}\n".encode(encoding, "backslashreplace").decode(encoding))


def report_failure(root: Path, path: str, error: PromptError) -> None:
    """Print an error with its file and line."""
    print_line(str(Problem(str(root / path), error.line, str(error))))


class _PromptSize(NamedTuple):
    name: str
    path: str
    bytes: int
    tokens_estimate: int


def lint(roots: Sequence[Path], as_json: bool) -> int:
    """Print the problems of the libraries, and the size of their prompts; return 1 if there are problems."""
    problems: list[Problem] = []
    sizes: list[_PromptSize] = []
    for root in roots:
        library = open_library(root)
        problems += [item._replace(path=str(root / item.path)) for item in lint_library(library)]
        for name in library.names:
            size = len(library.source(name))
            sizes.append(_PromptSize(name, str(root / library.path(name)), size, estimate_tokens(size)))
    if as_json:
        report = {"problems": [item._asdict() for item in problems], "prompts": [item._asdict() for item in sizes]}
        print_line(json.dumps(report, indent=2))
    else:
        for problem in problems:
            print_line(str(problem))
        total = sum(item.bytes for item in sizes)
        estimate = f"{total:,} bytes, about {estimate_tokens(total):,} tokens (an estimate: bytes / 4)"
        print_line(f"{format_count(len(sizes), 'prompt')}, {estimate}: {format_count(len(problems), 'finding')}")
    return 1 if problems else 0


def render(root: Path, name: str, pairs: Sequence[str]) -> int:
    """Print the messages of a prompt, each after its role. Return 1 if the prompt is broken. `pairs` are the
    arguments of the prompt, as KEY=VALUE. Raises UsageError if they are invalid."""
    library = open_library(root)
    arguments: dict[str, str] = {}
    for word in pairs:
        key, equals, value = word.partition("=")
        if not equals or key in arguments:
            raise UsageError(f"{word[:80]!r} is not KEY=VALUE" if not equals else f"{key!r} is given twice")
        arguments[key] = value
    try:
        path = library.path(name)
    except PromptError as error:
        raise UsageError(str(error)) from None
    try:
        rendering = library.rendering(name)
        try:
            values = parse_values(rendering.prompt, arguments)
        except PromptError as error:
            raise UsageError(str(error)) from None
        messages = rendering.render(values)
    except PromptError as error:
        report_failure(root, path, error)
        return 1
    texts: list[str] = []
    for role, content in messages:
        if isinstance(content, Text):
            texts.append(f"[{role}]\n{content.text}")
        else:
            description = f"{content.mime_type}, {len(content.data):,} bytes"
            texts.append(f"[{role}]\n({content.kind} {content.path}: {description})")
    print_line("\n\n".join(texts))
    return 0


def test(roots: Sequence[Path], update: bool) -> int:
    """Compare the messages of each prompt with those of its golden example. With `update`, replace examples that
    differ. Return 1 if a prompt fails."""
    outcomes: Counter[str] = Counter()
    for root in roots:
        library = open_library(root)
        for name in library.names:
            outcomes[_test_prompt(library, name, root, update)] += 1
    order = ("passed", "failed", "updated", "without an example")
    print_line(
        ", ".join(f"{outcomes[outcome]} {outcome}" for outcome in order if outcomes[outcome] or outcome in order[:2])
    )
    return 1 if outcomes["failed"] else 0


def _test_prompt(library: Library, name: str, root: Path, update: bool) -> str:
    """Compare a prompt with its example, print a difference, and return the outcome as `test` counts it."""
    path = library.path(name)
    try:
        expected = golden.read_golden(library, name)
        if expected is None:
            library.prompt(name)
            return "without an example"
        actual = golden.make_golden(library, name, expected.arguments)
        if actual == expected:
            return "passed"
        if update:
            data = golden.format_golden(actual).encode()
            put(Folder(root), golden.find_golden_path(path), data, allow_any_contents)
    except PromptError as error:
        report_failure(root, path, error)
        return "failed"
    path = str(root / golden.find_golden_path(path))
    if update:
        print_line(f"{path}: updated")
        return "updated"
    before, after = (golden.format_golden(example).splitlines() for example in (expected, actual))
    print_line(f"{path}: the output differs")
    for line in unified_diff(before, after, "expected", "now", lineterm=""):
        print_line(line)
    return "failed"


def export(root: Path, names: Sequence[str] | None, target: Path, force: bool) -> int:
    """Write the prompts with these names (all if it is None) as skills. Each is a directory in `target`.

    Return 1 and write none if a prompt can't be a skill, or if a different file would be replaced and `force` is
    False. Raises UsageError.
    """
    library = open_library(root)
    skills: dict[str, dict[str, bytes]] = {}
    chosen = choose_names(library, names)
    for name in chosen:
        try:
            skills[name] = library.export(name)
        except PromptError as error:
            report_failure(root, library.path(name), error)
    if len(skills) < len(chosen):
        return 1
    folder = open_target(target)
    differing = [f"{name}/{path}" for name, files in skills.items() for path in find_differing(folder, name, files)]
    if differing and not force:
        for path in differing:
            print_line(f"{target / path}: a different file already exists (--force replaces it)")
        return 1
    try:
        written = [name for name, files in skills.items() if write_skill(folder, name, files, library.scripts(name))]
    except PromptError as error:
        report_failure(target, "", error)
        return 1
    for name in written:
        print_line(f"{target / name}")
    print_line(f"{format_count(len(written), 'skill')} written, {len(skills) - len(written)} unchanged")
    return 0


def open_target(target: Path) -> Folder:
    """Return the folder to write to, and create it if it is missing. Raises UsageError."""
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError:
        raise UsageError(f"{target} is not a directory, and can't be created") from None
    return Folder(target)


def choose_names(library: Library, names: Sequence[str] | None) -> Sequence[str]:
    """Return these names without duplicates, or all names if `names` is None. Raises UsageError for an unknown
    name."""
    if names is None:
        return library.names
    unknown = [name for name in names if name not in library]
    if unknown or not names:
        raise UsageError(f"there is no prompt {unknown[0]!r}" if unknown else "specify a prompt, or --all")
    return list(dict.fromkeys(names))
