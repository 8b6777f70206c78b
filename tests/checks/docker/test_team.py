"""The files that a team copies: each is independent, and valid for the program that reads it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.checks.docker.debian import find_program
from tests.checks.docker.images import interpolated
from tests.checks.docker.test_compose import SCHEMA
from tests.checks.docker.test_kubernetes import MANIFESTS

DOCKER = Path(__file__).resolve().parents[3] / "docker"
COMPOSE: dict[str, Any] = yaml.safe_load((DOCKER / "compose.team.yaml").read_text())
SERVERS: dict[str, Any] = COMPOSE["services"]["servers"]
UNIT = DOCKER / "mcp-server-bundle.service"


@pytest.mark.skipif(not SCHEMA.is_file(), reason=f"needs the official schema {SCHEMA}")
def test_the_file_conforms_to_the_compose_schema() -> None:
    jsonschema.Draft7Validator(json.loads(SCHEMA.read_text())).validate(COMPOSE)


def test_the_file_is_independent_of_the_checkout() -> None:
    for service in COMPOSE["services"].values():
        assert "build" not in service
        assert interpolated(service["image"]) == "mcp-bundle"
        assert [volume.split(":")[0] for volume in service["volumes"]] == list(COMPOSE["volumes"])
        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
    assert COMPOSE["secrets"] == {"mcp_token": {"file": "./mcp_token"}}
    assert set(COMPOSE["configs"]["bundle"]) == {"content"}
    assert SERVERS["ports"] == ["127.0.0.1:8000:8000"]


def test_compose_and_kubernetes_have_the_same_servers() -> None:
    # Those start in test_kubernetes.py.
    ours, theirs = (
        yaml.safe_load(interpolated(text))
        for text in (COMPOSE["configs"]["bundle"]["content"], MANIFESTS["configmap"]["data"]["bundle.yaml"])
    )
    assert ours["servers"] == theirs["servers"]
    assert set(ours) == set(theirs)
    assert ours["token-file"] == "/run/secrets/mcp_token"
    folders = COMPOSE["services"]["folders"]["entrypoint"][2:]
    assert folders == MANIFESTS["deployment"]["spec"]["template"]["spec"]["initContainers"][0]["command"][2:]


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/opt/mcp/bin/mcp-server-bundle", sys.executable))
    analyze = find_program("systemd-analyze", "systemd", tmp_path)
    for words in (["verify", str(unit)], ["security", "--offline=true", "--threshold=20", str(unit)]):
        done = subprocess.run([analyze, *words], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Unknown" not in done.stderr


def test_prometheus_accepts_the_configuration(promtool: str) -> None:
    words = [promtool, "check", "config", "--syntax-only", str(DOCKER / "prometheus.yaml")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    config = yaml.safe_load((DOCKER / "prometheus.yaml").read_text())
    assert [job["job_name"] for job in config["scrape_configs"]] == ["mcp"]
    assert all((DOCKER / name).is_file() for name in config["rule_files"])
    assert 'up{job="mcp"}' in (DOCKER / "alerts.yaml").read_text()
