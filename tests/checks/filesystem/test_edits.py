"""2,000 edits of files in ten languages as models write them: with other indentation than the file has, shifted,
mixed, or with a line that is not there. Each is made as it was meant, or refused with the place where it was meant.

`pytest -s` shows how many of which kind. The edits are made of files of this repository, half of these with tabs.
"""

import ast
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from servers.filesystem.edit.replacements import Edit, apply_edits
from servers.filesystem.errors import FilesError
from tests.checks.benchmarks.peers import NPM
from tests.wire import Wire

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[3]
FILES = {
    "Python": "servers/filesystem/**/*.py",
    "JavaScript": "servers/common/web/*.js",
    "CSS": "servers/**/*.css",
    "HTML": "servers/**/*.html",
    "YAML": "docker/**/*.yaml",
    "SQL": "tests/servers/postgres/*.sql",
    "Lua": "shared/stores/redis/**/*.lua",
    "TOML": "*.toml",
    "Makefile": "Makefile",
    "Markdown": "servers/*/README.md",
}
COUNT = 2_000
_TAB_IS_SYNTAX = ("YAML", "Makefile")
_INDENT = re.compile(r"^[ \t]*", re.MULTILINE)


class Meant(NamedTuple):
    """A text, the edit of it that is meant, where that is, and what it makes of the text."""

    language: str
    text: str
    old: str
    new: str
    line: int

    @property
    def result(self) -> str:
        return self.text.replace(self.old, self.new)


def reindented(text: str, change: Callable[[str], str]) -> str:
    return _INDENT.sub(lambda match: change(match[0]) if match.end() < len(text) else match[0], text)


@cache
def texts(language: str) -> list[str]:
    paths = sorted(ROOT.glob(FILES[language]))
    read = [path.read_text() for path in paths if "node_modules" not in path.parts]
    if language not in _TAB_IS_SYNTAX:
        step = "  " if language in ("JavaScript", "CSS", "HTML") else "    "
        read += [reindented(text, lambda one: one.replace(step, "\t")) for text in read]
    return [text for text in read if text.count("\n") > 12]


def changed(chosen: random.Random, lines: list[str]) -> list[str]:
    """The lines with one of them other, one more, or one more that is deeper."""
    lines = list(lines)
    at = chosen.randrange(len(lines))
    kind = chosen.choice(("other", "more", "less")) if len(lines) > 2 else chosen.choice(("other", "more"))
    if kind == "other":
        lines[at] = re.sub(r"\w+(?=\W*$)", "renamed", lines[at], count=1)
    elif kind == "more":
        lines.insert(at, lines[at])
    else:
        del lines[at]
    return lines


def meant(count: int) -> Iterator[Meant]:
    chosen = random.Random(42)
    while count:
        language = chosen.choice(list(FILES))
        text = chosen.choice(texts(language))
        lines = text.split("\n")
        size = chosen.randint(2, 6)
        start = chosen.randrange(1, len(lines) - size - 1)
        passage = lines[start : start + size]
        old, new = "\n".join(passage) + "\n", "\n".join(changed(chosen, passage)) + "\n"
        there = stripped(text).count(stripped("\n".join(passage))), text.count(old)
        if passage[0].strip() and passage[-1].strip() and new != old and there == (1, 1):
            yield Meant(language, text, old, new, start + 1)
            count -= 1


def stripped(text: str) -> str:
    return "\n".join(line.strip() for line in text.split("\n"))


def as_spaces(one: str) -> str:
    return one.replace("\t", "    ")


def as_tabs(one: str) -> str:
    return one.replace("    ", "\t")


def halved(one: str) -> str:
    return one[: len(one) // 2]


def doubled(one: str) -> str:
    return one * 2


def shifted_right(one: str) -> str:
    return f"{one[:1] if one[:1] == chr(9) else '    '}{one}"


WAYS: dict[str, Callable[[str], str]] = {
    "spaces for tabs": lambda text: reindented(text, as_spaces),
    "tabs for spaces": lambda text: reindented(text, as_tabs),
    "half": lambda text: reindented(text, halved),
    "twice": lambda text: reindented(text, doubled),
    "moved to the right": lambda text: reindented(text, shifted_right),
    "moved to the left": lambda text: reindented(text, lambda one: one[1:] if one[:1] == "\t" else one[4:]),
}


def mixed(chosen: random.Random, passage: str) -> str:
    """One line has another indentation."""
    lines = passage.split("\n")
    at = chosen.randrange(len(lines) - 1)
    lines[at] = f"   {lines[at]}" if chosen.random() < 0.5 else lines[at].lstrip()
    return "\n".join(lines)


def misspelt(chosen: random.Random, passage: str) -> str:
    """One word is another one, or a line is missing."""
    lines = passage.split("\n")
    at = chosen.randrange(len(lines) - 1)
    if len(lines) > 3 and chosen.random() < 0.3:
        del lines[chosen.randrange(1, len(lines) - 2)]
    else:
        lines[at] += chosen.choice((" x", "s", ";", " # see above"))
    return "\n".join(lines)


def is_right(language: str, text: str) -> bool:
    try:
        if language == "Python":
            ast.parse(text)
        elif language == "YAML":
            list(yaml.safe_load_all(text))
        elif language == "Makefile":
            return not re.search(r"^ +[@$]", text, re.MULTILINE)
    except (SyntaxError, yaml.YAMLError):
        return False
    return True


def outside(case: Meant, after: str) -> bool:
    """Whether all but the passage is as it was."""
    before, _, behind = case.text.partition(case.old)
    return after.startswith(before) and after.endswith(behind)


class Attempt(NamedTuple):
    """An edit as it is asked for, in a way that is not that of the file."""

    case: Meant
    way: str
    old: str
    new: str

    def fault(self, after: str) -> str | None:
        """What the edit has broken of the file; None where nothing is."""
        if not outside(self.case, after):
            return "changes other lines"
        broken = is_right(self.case.language, self.case.result) and not is_right(self.case.language, after)
        return "breaks the syntax" if broken else None


def attempts() -> Iterator[Attempt]:
    chosen = random.Random(1)
    for case in meant(COUNT):
        way = chosen.choice([*WAYS, "mixed"])
        if way == "mixed":
            yield Attempt(case, way, mixed(chosen, case.old), case.new)
        else:
            yield Attempt(case, way, WAYS[way](case.old), WAYS[way](case.new))


def test_edits_with_other_white_space(capsys: Any) -> None:
    outcomes: dict[str, Counter[str]] = {way: Counter() for way in (*WAYS, "mixed")}
    wrong = []
    for attempt in attempts():
        case, way, old, new = attempt
        try:
            after = apply_edits(case.text, [Edit(old, new)]).after
        except FilesError as error:
            outcomes[way][error.code] += 1
            continue
        outcomes[way]["as meant" if after == case.result else "otherwise"] += 1
        if fault := attempt.fault(after):
            wrong.append((way, case.language, old, new, fault, after[len(case.text.partition(case.old)[0]) :][:300]))
    with capsys.disabled():
        print("", *(f"{way}: {dict(counts)}" for way, counts in outcomes.items()), sep="\n")
    assert wrong == []


async def test_the_same_edits_by_the_official_server(
    tmp_path: Path, pytestconfig: pytest.Config, capsys: Any
) -> None:
    if not pytestconfig.getoption("peers"):
        pytest.skip("runs with --peers")
    outcomes: Counter[str] = Counter()
    file = tmp_path / "file"
    async with Wire(NPM.stdio(tmp_path), check=False) as wire:
        await wire.initialize()
        for attempt in attempts():
            case = attempt.case
            file.write_bytes(case.text.encode())
            edits = [{"oldText": attempt.old, "newText": attempt.new}]
            arguments = {"name": "edit_file", "arguments": {"path": str(file), "edits": edits}}
            answer = await wire.request("tools/call", arguments)
            after = file.read_bytes().decode()
            if answer.get("result", {"isError": True}).get("isError"):
                outcomes["refused"] += 1
            else:
                outcomes[attempt.fault(after) or ("as meant" if after == case.result else "otherwise")] += 1
    with capsys.disabled():
        print(f"\nthe official server: {dict(outcomes)}")
    assert outcomes.total() == COUNT


def test_hints_name_the_intended_place(capsys: Any) -> None:
    chosen = random.Random(2)
    named = total = 0
    for case in meant(COUNT // 2):
        old = misspelt(chosen, case.old)
        # Such a text is elsewhere in the file, perhaps with another indentation.
        if stripped(old) in stripped(case.text):
            continue
        with pytest.raises(FilesError) as caught:
            apply_edits(case.text, [Edit(old, case.new)])
        total += 1
        place = re.search(r"nearest is lines? (\d+)(?:-(\d+))?", caught.value.suggestion)
        if place is not None:
            first, last = int(place[1]), int(place[2] or place[1])
            named += first <= case.line + 1 and last >= case.line
    with capsys.disabled():
        print(f"\n{named} of {total} hints name the place")
    assert named / total >= 0.95
