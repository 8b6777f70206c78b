"""The library that the prompt server is measured with, made up in the same way every time, and one of its prompts."""

from pathlib import Path

LIBRARY = "prompts"
"""The folder that holds it."""
PROMPTS, FOLDERS = 10_000, 100
NAME = "review-07777"
"""The prompt that is asked for, of all servers."""
ARGUMENTS = {"code": "x" * 1_024, "focus": "security"}
TEXT = f"Review the code below. Look for {ARGUMENTS['focus']} only.\n\n{ARGUMENTS['code']}"
"""What it says with these arguments."""

_FILE = """\
---
name: {name}
title: Review part {number}
description: {description}
arguments:
  - name: code
    description: The code to review.
    required: true
  - name: focus
    description: What to look for.
    enum: [everything, security, performance]
    default: everything
---
Review the code below.{{% if focus != "everything" %}} Look for {{{{ focus }}}} only.{{% endif %}}


{{{{ code }}}}
"""


def make_library(folder: Path) -> None:
    """Many prompts in many folders."""
    for number in range(PROMPTS):
        file = folder / LIBRARY / f"part-{number % FOLDERS:02}" / f"{_name(number)}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text(number, "Find what is wrong with a part of the project, most serious first."))


def text(number: int, description: str) -> str:
    """The file of one prompt."""
    return _FILE.format(name=_name(number), number=number, description=description)


def _name(number: int) -> str:
    return f"review-{number:05}"
