"""`lint`, `render`, `test` and `export`: what there is to do with a library besides serving it.

Each gives its exit code: 0 where all is well, 1 where something is found or fails.
"""

import json
import sys
from collections import Counter
from collections.abc import Sequence
from difflib import unified_diff
from pathlib import Path
from typing import NamedTuple

from servers.prompts.arguments import parse_values
from servers.prompts.cli import golden
from servers.prompts.errors import Problem, PromptError
from servers.prompts.library.folder import Folder
from servers.prompts.library.library import Library
from servers.prompts.library.lint import estimate_tokens
from servers.prompts.library.lint import lint as linted
from servers.prompts.templates.rendering import Text
from servers.prompts.write.files import find_differing, put, write_skill
from shared.text import format_count


class UsageError(Exception):
    """What was asked for makes no sense; says why."""


def open_library(root: Path) -> Library:
    """The prompts of a folder. Raises Misuse where it has none: the folder is likely to be another one."""
    library = Library(root)
    library.look()
    if not library.names and not library.problems():
        raise UsageError(f"there is no prompt in {root}")
    return library


def say(line: str) -> None:
    """Prints a line; what the terminal has no character for, as an escape. Raises BrokenPipeError."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(f"{line}\n".encode(encoding, "backslashreplace").decode(encoding))


def report_failure(root: Path, path: str, error: PromptError) -> None:
    """Prints what is wrong, and where."""
    say(str(Problem(str(root / path), error.line, str(error))))


class _Size(NamedTuple):
    name: str
    path: str
    bytes: int
    tokens_estimate: int


def lint(roots: Sequence[Path], as_json: bool) -> int:
    """Prints what is wrong; 1 where anything is."""
    problems: list[Problem] = []
    sizes: list[_Size] = []
    for root in roots:
        library = open_library(root)
        problems += [one._replace(path=str(root / one.path)) for one in linted(library)]
        for name in library.names:
            size = len(library.source(name))
            sizes.append(_Size(name, str(root / library.path(name)), size, estimate_tokens(size)))
    if as_json:
        found = {"problems": [one._asdict() for one in problems], "prompts": [one._asdict() for one in sizes]}
        say(json.dumps(found, indent=2))
    else:
        for problem in problems:
            say(str(problem))
        total = sum(one.bytes for one in sizes)
        estimate = f"{total:,} bytes, about {estimate_tokens(total):,} tokens (an estimate: bytes / 4)"
        say(f"{format_count(len(sizes), 'prompt')}, {estimate}: {format_count(len(problems), 'finding')}")
    return 1 if problems else 0


def render(root: Path, name: str, written: Sequence[str]) -> int:
    """Prints the messages, each after its role; 1 where the prompt is broken. Raises Misuse for wrong arguments."""
    library = open_library(root)
    given: dict[str, str] = {}
    for one in written:
        key, equals, value = one.partition("=")
        if not equals or key in given:
            raise UsageError(f"{one[:80]!r} is not KEY=VALUE" if not equals else f"{key!r} is given twice")
        given[key] = value
    try:
        path = library.path(name)
    except PromptError as error:
        raise UsageError(str(error)) from None
    try:
        rendering = library.rendering(name)
        try:
            found = parse_values(rendering.prompt, given)
        except PromptError as error:
            raise UsageError(str(error)) from None
        messages = rendering.render(found)
    except PromptError as error:
        report_failure(root, path, error)
        return 1
    texts: list[str] = []
    for role, content in messages:
        if isinstance(content, Text):
            texts.append(f"[{role}]\n{content.text}")
        else:
            about = f"{content.mime_type}, {len(content.data):,} bytes"
            texts.append(f"[{role}]\n({content.kind} {content.path}: {about})")
    say("\n\n".join(texts))
    return 0


def test(roots: Sequence[Path], update: bool) -> int:
    """Prints how what comes differs from the examples, or with `update` makes it the examples; 1 where one fails."""
    outcomes: Counter[str] = Counter()
    for root in roots:
        library = open_library(root)
        for name in library.names:
            outcomes[_test_prompt(library, name, root, update)] += 1
    order = ("passed", "failed", "updated", "without an example")
    say(", ".join(f"{outcomes[one]} {one}" for one in order if outcomes[one] or one in order[:2]))
    return 1 if outcomes["failed"] else 0


def _test_prompt(library: Library, name: str, root: Path, update: bool) -> str:
    path = library.path(name)
    try:
        expected = golden.read_golden(library, name)
        if expected is None:
            library.prompt(name)
            return "without an example"
        now = golden.make_golden(library, name, expected.arguments)
        if now == expected:
            return "passed"
        if update:
            put(Folder(root), golden.find_golden_path(path), golden.format_golden(now).encode(), lambda _: None)
    except PromptError as error:
        report_failure(root, path, error)
        return "failed"
    path = str(root / golden.find_golden_path(path))
    if update:
        say(f"{path}: updated")
        return "updated"
    before, after = (golden.format_golden(one).splitlines() for one in (expected, now))
    say(f"{path}: something else comes")
    for line in unified_diff(before, after, "expected", "now", lineterm=""):
        say(line)
    return "failed"


def export(root: Path, names: Sequence[str] | None, target: Path, force: bool) -> int:
    """Writes the prompts of these names (None: all) as directories in `target`.

    1 where one can't be a skill, or would replace what differs: then none is written. Raises Misuse.
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
    old = [f"{name}/{path}" for name, files in skills.items() for path in find_differing(folder, name, files)]
    if old and not force:
        for path in old:
            say(f"{target / path}: there is another file already (--force replaces it)")
        return 1
    try:
        written = [name for name, files in skills.items() if write_skill(folder, name, files, library.scripts(name))]
    except PromptError as error:
        report_failure(target, "", error)
        return 1
    for name in written:
        say(f"{target / name}")
    say(f"{format_count(len(written), 'skill')} written, {len(skills) - len(written)} unchanged")
    return 0


def open_target(target: Path) -> Folder:
    """The folder to write to, which is made where it is missing. Raises UsageError."""
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError:
        raise UsageError(f"{target} is not a directory, and can't be created") from None
    return Folder(target)


def choose_names(library: Library, names: Sequence[str] | None) -> Sequence[str]:
    """The names that were given, or all. Raises UsageError."""
    if names is None:
        return library.names
    unknown = [one for one in names if one not in library]
    if unknown or not names:
        raise UsageError(f"there is no prompt {unknown[0]!r}" if unknown else "name a prompt, or say --all")
    return list(dict.fromkeys(names))
