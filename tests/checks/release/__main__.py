"""`make release`: everything that is published, in build/release, checked; nothing is uploaded.

dist/ has the source distribution and the wheel, hosts/ what `export` writes. Beside them are an SBOM (CycloneDX) of
the wheel with all extras, and SHA256SUMS. Each distribution is built twice and must have the same bytes.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory

import jsonschema

from hatch_build import namespace
from servers.bundle.commands.export import main as export
from tests import npm, pypi, schemas
from tests.checks.release.contents import find_faults

ROOT = Path(__file__).resolve().parents[3]
TOOLS = Path(__file__).with_name("requirements.txt")
OUT = ROOT / "build" / "release"
MCPB = ROOT / "tests" / "checks" / "bundle"
SERVER_JSON = schemas.SPEC_DIR / "packaging" / "server-2025-12-11.schema.json"


def main() -> None:
    """Build and check everything. Exits with a line for each fault."""
    repository = os.environ.get("REPOSITORY", "")
    try:
        publisher = namespace(repository)
        tools = pypi.require("release", TOOLS)
        node = npm.find_node()
        npm.require(node, MCPB, "the tool for MCPB bundles")
    except (ValueError, npm.Unavailable) as reason:
        sys.exit(f"make release REPOSITORY=https://github.com/USER/NAME: {reason}")
    shutil.rmtree(OUT, ignore_errors=True)
    build(tools, OUT / "dist")
    with redirect_stdout(sys.stderr):
        export(["--output", str(OUT / "hosts"), "--namespace", publisher])
    faults = [*find_faults(ROOT, OUT / "dist"), *check_hosts(node, OUT / "hosts")]
    if faults:
        sys.exit("\n".join(f"make release: {fault}" for fault in faults))
    describe_parts(tools, OUT)
    write_sums(OUT)
    print(f"{OUT} is what you publish: dist/ on PyPI, hosts/ to the MCP registry and to hosts")


def build(tools: Path, dist: Path) -> None:
    """Build both distributions, the wheel from the source distribution, and check what the index will show."""
    with TemporaryDirectory() as again:
        for folder in (str(dist), again):
            run([tools, "-m", "build", "--installer", "uv", "--outdir", folder, ROOT])
        for path in dist.iterdir():
            if path.read_bytes() != Path(again, path.name).read_bytes():
                sys.exit(f"make release: {path.name} has other bytes when it is built again")
    run([tools, "-m", "twine", "check", "--strict", *sorted(dist.iterdir())])


def check_hosts(node: Path, hosts: Path) -> list[str]:
    """Return what the official schema of the MCP registry and the official tool for bundles refuse."""
    if not SERVER_JSON.is_file():
        return [f"{SERVER_JSON}, the official schema, is missing: CI fetches it with the others into $MCP_SPEC_DIR"]
    validator = jsonschema.Draft7Validator(json.loads(SERVER_JSON.read_text()))
    faults = [
        f"{path}: {error.message}"
        for path in sorted(hosts.glob("*/server.json"))
        for error in validator.iter_errors(json.loads(path.read_text()))
    ]
    tool = [node, MCPB / "node_modules" / "@anthropic-ai" / "mcpb" / "dist" / "cli" / "cli.js"]
    for path in sorted(hosts.glob("*/*.mcpb")):
        with TemporaryDirectory() as folder:
            run([*tool, "unpack", path, folder])
            run([*tool, "validate", Path(folder, "manifest.json")])
    return faults


def describe_parts(tools: Path, out: Path) -> None:
    """Write the SBOM of an environment with the wheel and all extras, in the versions of the tests."""
    uv = tools.with_name("uv")
    (wheel,) = (out / "dist").glob("*.whl")
    with TemporaryDirectory() as folder:
        python = Path(folder, "bin", "python")
        run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, folder])
        constraints = ["--constraints", ROOT / "tests" / "constraints.txt"]
        run([uv, "pip", "install", "--quiet", "--python", python, *constraints, f"{wheel}[all]"])
        options = ["--output-reproducible", "--of", "JSON", "--pyproject", ROOT / "pyproject.toml"]
        run([tools, "-m", "cyclonedx_py", "environment", *options, "--output-file", out / "sbom.cdx.json", python])


def write_sums(out: Path) -> None:
    """Write SHA256SUMS, as `sha256sum --check` reads it."""
    files = sorted(path for path in out.rglob("*") if path.is_file())
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(out).as_posix()}\n" for path in files
    ]
    (out / "SHA256SUMS").write_text("".join(lines))


def run(command: list[str | Path]) -> None:
    """Run a program quietly. Exits with its output if it fails."""
    done = subprocess.run([str(word) for word in command], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"make release: {command[0]} failed\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    main()
