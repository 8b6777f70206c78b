"""How many commands, skills and prompt files of public collections are served, and why the others are not.

python -m tests.checks.benchmarks.prompts_collections [FOLDER ...]

Without a FOLDER, the collections below are fetched by git; nothing of them is in this project. A file counts as a
prompt if it is where hosts look for them, whatever the server makes of it.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from servers.prompts.library.library import Library

COLLECTIONS = (
    "https://github.com/anthropics/claude-plugins-official",
    "https://github.com/anthropics/skills",
    "https://github.com/wshobson/agents",
    "https://github.com/qdhenry/Claude-Command-Suite",
    "https://github.com/github/awesome-copilot",
    "https://github.com/github/spec-kit",
    "https://github.com/GiorgiB97/awesome-cursor-commands",
    "https://github.com/OutlineDriven/odin-gemini-cli-extension",
    "https://github.com/ZaxbyHub/opencode-swarm",
    "https://github.com/NakamuraTakumu/Codex-Prompts",
)
_FOLDERS = frozenset({"agent", "agents", "command", "commands", "prompts"})
_DOCUMENTS = frozenset({"AGENTS.md", "CHANGELOG.md", "CLAUDE.md", "CONTRIBUTING.md", "GEMINI.md", "README.md"})


def prompts_in(folder: Path) -> Iterator[str]:
    """Yield the paths of the files in which a host would see a skill, a command, an agent or a prompt."""
    paths = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file() or path.is_symlink())
    skills = {path.parent for path in paths if path.name == "SKILL.md"}
    for path in paths:
        is_skill = path.name == "SKILL.md"
        is_inside = not is_skill and not skills.isdisjoint(path.parents)
        is_named = path.suffix in (".md", ".toml") and not _FOLDERS.isdisjoint(path.parts[:-1])
        is_prompt = path.name.endswith(".prompt.md") or (is_named and path.name not in _DOCUMENTS)
        if path.parts[0] != ".git" and (is_skill or (is_prompt and not is_inside)):
            yield str(path)


def compare(folder: Path) -> tuple[int, list[str], list[str]]:
    """Return the number of prompts that are served, the others with the reasons of the server, and those without."""
    library = Library(folder)
    library.scan()
    library.check()
    files = {library.path(name) for name in library.names}
    problems = {problem.path: problem.reason for problem in library.problems()}
    named: list[str] = []
    unnamed: list[str] = []
    expected = list(prompts_in(folder))
    for path in expected:
        reason = next((reason for above, reason in problems.items() if f"{path}/".startswith(f"{above}/")), None)
        if path not in files:
            (unnamed if reason is None else named).append(path if reason is None else f"{path}: {reason}")
    return len(expected) - len(named) - len(unnamed), named, unnamed


def main(folders: Sequence[str]) -> None:
    """Print a line for each collection, and one for each prompt that is not served."""
    with tempfile.TemporaryDirectory() as temporary:
        for source in folders or COLLECTIONS:
            folder = Path(source)
            if not folders:
                folder = Path(temporary) / os.path.basename(source)
                subprocess.run(["git", "clone", "--quiet", "--depth", "1", source, str(folder)], check=True)
            commit = subprocess.run(
                ["git", "-C", folder, "rev-parse", "--short", "HEAD"], capture_output=True, text=True
            )
            count, named, unnamed = compare(folder)
            total = count + len(named) + len(unnamed)
            print(
                f"{folder.name} {commit.stdout.strip()}: {count} of {total} served, {len(unnamed)} without a reason"
            )
            for line in [*named, *unnamed]:
                print(f"    {line}")


if __name__ == "__main__":
    main(sys.argv[1:])
