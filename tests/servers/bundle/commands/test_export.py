"""`export` as a command: written files and errors."""

import json
from pathlib import Path

import pytest

from servers.bundle.commands.export import main, write_files
from servers.catalog import load_catalog
from tests.servers.bundle.refusals import refused

VERSION = load_catalog().servers[0].version


def test_export_is_reproducible_and_prints_each_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each file is printed with its next step, and may be written again."""
    folder = tmp_path / "my files" / "fetch"
    assert main(["fetch", "--output", str(tmp_path / "my files")]) == 0
    published, opened, copied, extended, listed = capsys.readouterr().out.splitlines()
    assert published.startswith(f"{folder / 'server.json'}: ")
    assert published.endswith(f"mcp-publisher publish '{folder / 'server.json'}'")
    assert opened.startswith(f"{folder / f'fetch-{VERSION}.mcpb'}: open it with Claude Desktop")
    assert copied.startswith(f"{folder / 'fetch.yaml'}: copy it to ~/.docker/mcp/catalogs")
    assert copied.endswith("docker mcp profile create --name fetch --server file://fetch.yaml")
    assert extended.endswith(f"gemini extensions install '{folder / 'plugin'}'")
    assert listed.startswith(f"{tmp_path / 'my files' / '.claude-plugin' / 'marketplace.json'}: ")
    assert listed.count(f"plugin marketplace add '{tmp_path / 'my files'}'") == 2
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert main(["fetch", "--output", str(tmp_path / "my files")]) == 0
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_an_existing_file_prevents_the_export_without_force(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "fetch").mkdir()
    described = tmp_path / "fetch" / "server.json"
    described.write_text("mine")
    assert "--force replaces it" in refused(capsys, main, "everything", "fetch", "--output", str(tmp_path))
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [described]
    assert main(["fetch", "--output", str(tmp_path), "--force", "--namespace", "io.github.someone"]) == 0
    assert json.loads(described.read_text())["name"] == "io.github.someone/mcp-bundle-fetch"


def test_unusable_names_namespaces_and_outputs_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    out = ("--output", str(tmp_path / "out"))
    assert "there is no server 'fish'" in refused(capsys, main, "fish", *out)
    for name in ("someone", "io.github/me", "io..github", "io.git hub", "a." * 80 + "b"):
        assert "is not a valid namespace" in refused(capsys, main, "fetch", "--namespace", name, *out)
    assert "/file" in refused(capsys, main, "fetch", "--output", str(tmp_path / "file"))
    assert not (tmp_path / "out").exists()


def test_force_replaces_a_link_instead_of_its_target(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "file").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="--force replaces it"):
        write_files(out, {"file": b"new"})
    write_files(out, {"file": b"new"}, force=True)
    assert (out / "file").read_bytes() == b"new"
    assert not (out / "file").is_symlink()
    assert not (tmp_path / "elsewhere").exists()
    assert (out / "file").stat().st_mode & 0o111 == 0
