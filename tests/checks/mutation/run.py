"""Changes the code of an area in small ways, one at a time, runs the tests that reach the change, and prints the
changes that none of them noticed: `make mutants AREA=protocol`.

All of it happens in a copy, `build/mutants/AREA`; a later run goes on where the code has changed since.
"""

import os
import subprocess
import sys
from pathlib import Path

import tomli_w

from tests.checks.mutation.areas import AREAS, Area
from tests.schemas import SPEC_DIR

ROOT = Path(__file__).parents[3]
HELD = (".git", ".venv", "build", "dist", "mutants", "pyproject.toml", "tests")
"""What is not copied beside the code that is changed; the last two are by the tool itself."""

PLUGINS = ("-p", "tests.checks.mutation.selection", "-p", "no:cacheprovider")
LIBRARIES = ("anyio", "httpx", "hypothesis", "pydantic", "pytest", "pytest_asyncio", "starlette", "uvicorn")
PRELOADED = "libraries.txt"
"""The file that names them."""


def configuration(area: Area, beside: list[str]) -> str:
    """The settings of the project, with those of the tool for one area."""
    options = {
        "source_paths": ["shared", "servers"],
        "only_mutate": list(area.files),
        "also_copy": beside,
        "pytest_add_cli_args": [*PLUGINS, "-W", "ignore::pytest.PytestAssertRewriteWarning"],
        # What an earlier run has left in a cache would hide a change: each is looked at in a process that has
        # imported nothing of ours.
        "process_isolation": "forkserver",
        "forkserver_warmup": "import",
        "preload_modules_file": PRELOADED,
        "pytest_add_cli_args_test_selection": [*area.tests, "-m", "not slow"],
    }
    return (ROOT / "pyproject.toml").read_text() + "\n" + tomli_w.dumps({"tool": {"mutmut": options}})


def prepare(name: str) -> Path:
    """A folder that looks like the checkout to the tool."""
    place = ROOT / "build" / "mutants" / name
    # What PYTHONPATH names and is not there when the tool starts, Python does not look into any more.
    (place / "mutants").mkdir(parents=True, exist_ok=True)
    beside = sorted(entry.name for entry in ROOT.iterdir() if entry.name not in HELD)
    for entry in [*beside, "tests"]:
        if not (place / entry).is_symlink():
            (place / entry).symlink_to(ROOT / entry)
    (place / PRELOADED).write_text("\n".join(LIBRARIES))
    (place / "pyproject.toml").write_text(configuration(AREAS[name], beside))
    return place


def main(arguments: list[str]) -> int:
    """The tool's exit code, or 2 where no area was named."""
    if not arguments or arguments[0] not in AREAS:
        print("name an area: " + ", ".join(AREAS), file=sys.stderr)
        return 2
    place = prepare(arguments[0])
    tool = str(Path(sys.executable).with_name("mutmut"))
    environment = {**os.environ, "PYTHONPATH": str(place / "mutants"), "MCP_SPEC_DIR": str(SPEC_DIR)}
    done = subprocess.run([tool, "run", *arguments[1:]], cwd=place, env=environment)
    print(f"Where tests noticed nothing (cd {place}; {tool} show NAME prints the change):")
    subprocess.run([tool, "results"], cwd=place)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
