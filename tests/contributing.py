"""The examples of CONTRIBUTING.md, run as printed."""

import re
from pathlib import Path
from textwrap import dedent
from typing import Any

PAGE = Path(__file__).resolve().parents[1] / "CONTRIBUTING.md"


def example(heading: str) -> str:
    """Returns the Python code under a heading."""
    _, _, section = PAGE.read_text().partition(f"\n## {heading}\n")
    found = re.search(r"^ *```python\n(.*?)```", section.partition("\n## ")[0], re.DOTALL | re.MULTILINE)
    assert found is not None, heading
    return dedent(found.group(1))


def names_of(heading: str) -> dict[str, Any]:
    """Runs the code under a heading; returns its names."""
    names: dict[str, Any] = {"__name__": "contributing"}
    exec(compile(example(heading), PAGE.name, "exec"), names)
    return names
