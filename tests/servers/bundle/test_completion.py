"""Shell completion of a line, through the same variables and pipe as argcomplete's own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("fcntl")

ROOT = Path(__file__).resolve().parents[3]
TINY = f"-- {sys.executable} -I -S {Path(__file__).with_name('tiny.py')}"


def completed(line: str, home: Path, rest: str = "") -> list[str]:
    """Returns the completions of the last word of the line, which `rest` follows."""
    answer, writes = os.pipe()
    env = {
        **os.environ, "HOME": str(home), "PYTHONPATH": str(ROOT), "_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n",
        "COMP_LINE": line + rest, "COMP_POINT": str(len(line)), "COMP_TYPE": "9", "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
        "_ARGCOMPLETE_COMP_WORDBREAKS": " \t\n\"'><=;|&(:",
    }  # fmt: skip
    script = f"exec 8>&{writes}; exec {sys.executable} -m servers"
    done = subprocess.run(
        ["bash", "-c", script], env=env, cwd=home, pass_fds=[writes], capture_output=True, timeout=60
    )
    os.close(writes)
    with os.fdopen(answer) as file:
        assert done.stderr == b""
        return file.read().splitlines()


OTHERS = [
    ("ins", ["install", "inspect"]),
    ("call - repeat ", ["count=", "mode=", "tags=", "text="]),
    ("info fi", ["filesystem"]),
    ("call cursor:", ["mine"]),
    ("call - repeat mode=f", ["fast"]),
    ("prompt - greet ", ["who="]),
    ("call - repeat --js", ["--json"]),
    ("call nothing ", []),
    ("list ", []),
]


@pytest.mark.parametrize(
    ("line", "found"), [("call - re", ["repeat"]), *(pytest.param(*row, marks=pytest.mark.slow) for row in OTHERS)]
)
def test_every_word_of_a_line_is_completed(line: str, found: list[str], tmp_path: Path) -> None:
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor/mcp.json").write_text('{"mcpServers": {"mine": {"command": "x"}}}')
    assert completed(f"mcp-server-bundle {line}", tmp_path, f" {TINY}") == found


@pytest.mark.slow
def test_a_catalog_server_completes_its_words(tmp_path: Path) -> None:
    """A failing server completes nothing, silently."""
    line = "mcp-server-bundle prompt everything test_prompt_with_arguments arg1=o"
    assert completed(line, tmp_path) == ["other"]
    assert completed("mcp-server-bundle read everything test://static-t", tmp_path) == ["//static-text"]
    assert completed("mcp-server-bundle call - re", tmp_path, " -- /no/server") == []
