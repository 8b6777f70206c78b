"""The images, built and run by `../shared/tools/build-image`: it needs no engine, but root and Debian.

The project itself needs nothing of it, these tests do. Where it is absent they are skipped, but under `CI=true` they
fail instead, as nothing else would tell that the images were not tried.
"""

import fcntl
import json
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
DOCKERFILE = ROOT / "docker" / "Dockerfile"
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text())
REPLICAS: dict[str, Any] = yaml.safe_load((ROOT / "docker" / "compose.replicas.yaml").read_text())
"""What is given besides, for a server with replicas."""
README = (ROOT / "docker" / "README.md").read_text()
TOOL = ROOT.parent / "shared" / "tools" / "build-image"
BUILD_SECONDS = 1_200

TOKEN = "a-token-of-the-test"
PLACES = {"/data": "/tmp/data", "/run/secrets/mcp_token": "/tmp/mcp_token"}
"""What is mounted into a container, and where it is here: the tool mounts nothing but a writable /tmp."""
PREPARE = 'umask 077; mkdir /tmp/data; printf %s "$0" > /tmp/mcp_token; exec "$@"'

is_debian_root = os.geteuid() == 0 and Path("/etc/debian_version").exists()
needs_tool = pytest.mark.skipif(
    not is_debian_root or not (TOOL.exists() or os.environ.get("CI") == "true"),
    reason=f"needs root, Debian and {TOOL}",
)


class Image(NamedTuple):
    """What the image says of itself."""

    tag: str
    config: dict[str, Any]

    @property
    def entrypoint(self) -> list[str]:
        words: list[str] = self.config["Entrypoint"]
        return words

    @property
    def user(self) -> int:
        return int(self.config["User"].split(":")[0])

    def command(self, arguments: list[str], environment: Mapping[str, str]) -> list[str]:
        """What runs the image on a read-only root, with the places it uses made, and TOKEN as its secret."""
        words = ["env", *(f"{name}={value}" for name, value in environment.items()), *self.entrypoint, *arguments]
        return [str(TOOL), "--run-ro", self.tag, "--", "sh", "-c", PREPARE, TOKEN, *map(moved, words)]


def moved(word: str) -> str:
    """`word` with the places that it names."""
    for place, here in PLACES.items():
        word = word.replace(place, here)
    return word


def build(target: str) -> Image:
    """Builds the image of a server, or of the bundle."""
    tag = f"mcp-bundle-{target}"
    # The tool makes its base image with the first build, and two at once would spoil it.
    with Path(tempfile.gettempdir(), "mcp-bundle-images.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _tool(str(DOCKERFILE), tag, str(ROOT), "--target", target)
    return Image(tag, json.loads(_tool("--inspect", tag)))


def _tool(*words: str) -> str:
    done = subprocess.run([TOOL, *words], capture_output=True, text=True, timeout=BUILD_SECONDS, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3_000:]
    return done.stdout


class Service(NamedTuple):
    """A server as it is started."""

    arguments: list[str]
    environment: dict[str, str]


def service(name: str) -> Service:
    """As compose.yaml has it, on any free port; a server it does not have, as README.md starts it."""
    if name not in COMPOSE["services"]:
        return Service([], {"MCP_TRANSPORT": "http", "MCP_TOKEN": TOKEN, "MCP_PORT": "0"})
    said = COMPOSE["services"][name]
    environment = {key: interpolated(value) for key, value in said["environment"].items()}
    return Service(said.get("command", []), {**environment, "MCP_PORT": "0"})


def cells(heading: str) -> list[list[str]]:
    """The rows of the first table under a heading of README.md."""
    section = README.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip().strip("`") for cell in row] for row in rows]


def interpolated(value: str) -> str:
    """With the defaults of the variables in it, where Compose is told of none."""
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value)
