"""What the shell is told when a line is to be completed: through the same variables and pipe as argcomplete's own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("fcntl")

ROOT = Path(__file__).resolve().parents[4]
TINY = f"-- {sys.executable} -I -S {Path(__file__).with_name('tiny.py')}"


def completed(line: str, home: Path, rest: str = "") -> list[str]:
    """What may stand in place of the last word of the line, after which `rest` stands already."""
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


@pytest.mark.slow
def test_the_shell_is_told_what_a_tool_takes(tmp_path: Path) -> None:
    found = ["count=", "mode=", "tags=", "text="]
    assert completed("mcp-server-bundle call - repeat ", tmp_path, f" {TINY}") == found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("mcp-server-bundle ins", ["install", "inspect"]),
        ("mcp-server-bundle call - re", ["repeat"]),
        ("mcp-server-bundle info fi", ["filesystem"]),
        ("mcp-server-bundle call fi", ["filesystem"]),
        ("mcp-server-bundle call cursor:", ["mine"]),
        ("mcp-server-bundle call - repeat mode=f", ["fast"]),
        ("mcp-server-bundle prompt - greet ", ["who="]),
        ("mcp-server-bundle call - repeat --js", ["--json"]),
        ("mcp-server-bundle call nothing ", []),
        ("mcp-server-bundle list ", []),
    ],
)
def test_the_shell_is_told_of_every_word(line: str, found: list[str], tmp_path: Path) -> None:
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor/mcp.json").write_text('{"mcpServers": {"mine": {"command": "x"}}}')
    assert completed(line, tmp_path, f" {TINY}") == found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("mcp-server-bundle prompt everything test_prompt_with_arguments arg1=o", ["other"]),
        ("mcp-server-bundle read everything test://static-t", ["//static-text"]),
    ],
)
def test_a_server_of_the_catalog_is_asked(line: str, found: list[str], tmp_path: Path) -> None:
    assert completed(line, tmp_path) == found


@pytest.mark.slow
def test_a_server_that_fails_completes_nothing_without_a_word(tmp_path: Path) -> None:
    assert completed("mcp-server-bundle call - re", tmp_path, " -- /no/server") == []
