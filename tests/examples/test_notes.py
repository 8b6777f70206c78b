"""What the tutorial shows of its steps; tests/checks/interop/test_tutorial.py runs them."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STEPS = sorted((ROOT / "examples" / "notes").glob("step_*.py"))
PAGE = (ROOT / "docs" / "tutorial.md").read_text()


def test_the_page_shows_the_code_of_the_steps() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == len(STEPS) == 6
    for block, step in zip(blocks, STEPS, strict=True):
        source = step.read_text()
        assert all(part in source for part in re.split(r"\n*^# \.\.\.\n+", block, flags=re.MULTILINE)), step.name
        assert f"examples/notes/{step.name}" in PAGE


def test_a_server_with_subscription_has_at_most_twenty_five_lines() -> None:
    lines = STEPS[3].read_text().splitlines()[1:]
    assert sum(bool(line.strip()) for line in lines) <= 25
