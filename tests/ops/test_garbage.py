"""How often a program of ours looks for garbage; in a process of its own, since it concerns all of one."""

import subprocess
import sys

from shared.ops.garbage import BETWEEN_COLLECTIONS

SCRIPT = """
import gc
from shared.ops.garbage import settle
gc.disable()
settle()
print(gc.isenabled(), gc.get_threshold()[0], gc.get_freeze_count() > 1_000)
"""


def test_what_is_loaded_is_not_looked_at_again_and_what_is_new_less_often() -> None:
    said = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    assert said.split() == ["True", str(BETWEEN_COLLECTIONS), "True"]
