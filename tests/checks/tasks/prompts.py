"""Tasks on a library of prompts; there is no peer."""

import re
from pathlib import Path

from tests.checks.tasks.session import Session
from tests.checks.tasks.task import Task

REVIEW = """---
description: Review code for mistakes.
arguments:
  - name: code
    description: The code.
    required: true
---
Review this:
{{ code }}
"""
GREET = """---
description: Greet somebody.
arguments:
  - name: who
    description: Whom.
    required: true
---
Hello {{ who }}!
"""


def make_library(folder: Path) -> None:
    """Write the library, which all tasks share."""
    (folder / "review.md").write_text(REVIEW)


def keep(folder: Path) -> None:
    """Make nothing."""


def render(session: Session, name: str, **arguments: str) -> str:
    pairs = [{"name": key, "value": value} for key, value in arguments.items()]
    return session.call("render_prompt", name=name, arguments=pairs)


def find_and_use(session: Session, _: Path) -> str:
    listed = session.call("search_prompts", query="look over code for mistakes")
    name = re.findall(r"(?m)^(\w+) \(code\*\)", listed)[0]
    return render(session, name, code="x = 1")


def save_and_use(session: Session, _: Path) -> str:
    session.call("save_prompt", name="greet", text=GREET)
    return render(session, "greet", who="Ada")


def save_and_delete(session: Session, _: Path) -> str:
    session.call("save_prompt", name="passing", text=GREET)
    return session.call("delete_prompt", name="passing")


TASKS = (
    Task("find a prompt and use it", keep, find_and_use, None, lambda _, text: "x = 1" in text),
    Task("see what prompts there are", keep, lambda session, _: session.call("search_prompts"), None,
         lambda _, text: "review (code*): Review code for mistakes." in text),
    Task("use a prompt of a known name", keep, lambda session, _: render(session, "review", code="y = 2"), None,
         lambda _, text: "y = 2" in text),
    Task("write a prompt and use it", keep, save_and_use, None, lambda _, text: "Hello Ada!" in text),
    Task("write a prompt and delete it", keep, save_and_delete, None,
         lambda folder, _: not (folder.parent / "passing.md").exists()),
)  # fmt: skip
