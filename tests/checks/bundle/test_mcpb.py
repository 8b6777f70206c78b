"""The bundles for desktop hosts: accepted by the official tool, unpacked and started as by a host."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from servers.catalog import Entry
from tests.raw import BARE
from tests.servers.bundle.exports.test_exports import chosen, each, exported
from tests.wire import Wire

__all__ = ["exported"]

HERE = Path(__file__).resolve().parent
STARTING = 300  # seconds in which uv makes an environment


def run(command: list[str], **options: Any) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=STARTING, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.timeout(2 * STARTING)
@each
async def test_a_host_unpacks_the_bundle_and_starts_it(
    entry: Entry, exported: Path, node: Path, installers: Path, tmp_path: Path
) -> None:
    tool = [str(node), str(HERE / "node_modules" / "@anthropic-ai" / "mcpb" / "dist" / "cli" / "cli.js")]
    packed, folder = exported / entry.name / f"{entry.name}-{entry.version}.mcpb", tmp_path / "bundle"
    run([*tool, "info", str(packed)])
    run([*tool, "unpack", str(packed), str(folder)])
    assert "Icon validation passed" in run([*tool, "validate", str(folder / "manifest.json")])
    run([*tool, "pack", str(folder), str(tmp_path / "again.mcpb")])
    assert set(zipfile.ZipFile(tmp_path / "again.mcpb").namelist()) == set(zipfile.ZipFile(packed).namelist())

    settings = json.dumps(chosen(entry, tmp_path))
    config = json.loads(run([str(node), str(HERE / "launching.mjs"), str(folder), settings]))
    command = [config["command"], *config["args"]]
    env = {
        **BARE,
        "PATH": os.pathsep.join((str(installers), os.defpath)),
        "UV_PYTHON": sys.executable,
        **config["env"],
    }
    run([*command, "--version"], env=env)
    async with Wire(command, cwd=tmp_path, env=env) as server:
        assert (await server.initialize())["serverInfo"]["name"] == entry.name
        answer = await server.request("tools/list")
    listed = [tool["name"] for tool in json.loads((folder / "manifest.json").read_text())["tools"]]
    assert [tool["name"] for tool in answer["result"]["tools"]] == listed
