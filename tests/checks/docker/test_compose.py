"""compose.yaml: valid for Compose, with confined servers. `test_images.py` runs its commands."""

import json
import os
from typing import Any

import jsonschema
import pytest

from servers.catalog import load_catalog
from tests.checks.docker.images import COMPOSE, interpolated
from tests.schemas import SPEC_DIR

SCHEMA = SPEC_DIR / "packaging" / "compose-spec.schema.json"
SERVERS = {name: said for name, said in COMPOSE["services"].items() if name != "proxy"}


@pytest.mark.skipif(
    not SCHEMA.is_file() and os.environ.get("CI") != "true",
    reason=f"needs the official schema {SCHEMA} (MCP_SPEC_DIR names another folder)",
)
def test_the_file_conforms_to_the_compose_schema() -> None:
    jsonschema.Draft7Validator(json.loads(SCHEMA.read_text())).validate(COMPOSE)


def test_compose_has_the_servers_of_the_catalog() -> None:
    # PostgreSQL's has nothing to serve there: the databases are elsewhere.
    served = [entry for entry in load_catalog().servers if entry.category != "testing" and entry.name != "postgres"]
    images = {entry.name: entry.image for entry in served}
    assert {name: said["image"] for name, said in SERVERS.items()} == images
    assert [said["build"]["target"] for said in SERVERS.values()] == list(SERVERS)


@pytest.mark.parametrize("said", COMPOSE["services"].values(), ids=COMPOSE["services"])
def test_each_is_confined(said: dict[str, Any]) -> None:
    assert said["read_only"] is True
    assert said["cap_drop"] == ["ALL"]
    assert said["security_opt"] == ["no-new-privileges:true"]
    assert set(said["deploy"]["resources"]["limits"]) == {"cpus", "memory", "pids"}
    assert said["restart"] == "unless-stopped"
    assert said["healthcheck"]["test"][0] == "CMD"


def test_only_fetch_has_an_external_network() -> None:
    assert COMPOSE["networks"]["inside"] == {"internal": True}
    assert {name: said["networks"] for name, said in SERVERS.items()} == {
        name: ["outside"] if name == "fetch" else ["inside"] for name in SERVERS
    }
    assert not [name for name, said in SERVERS.items() if "ports" in said]


def test_every_server_requires_the_token() -> None:
    for said in SERVERS.values():
        assert said["environment"]["MCP_TOKEN_FILE"] == f"/run/secrets/{said['secrets'][0]}"
        assert "MCP_NO_AUTH" not in said["environment"]
        assert interpolated(said["environment"]["MCP_ALLOWED_HOST"]).split(",") == ["localhost", *SERVERS]


def test_each_volume_is_used_once_and_declared() -> None:
    used = [volume.split(":") for said in SERVERS.values() for volume in said.get("volumes", [])]
    assert sorted(name for name, _ in used) == sorted(COMPOSE["volumes"])
    assert {place for _, place in used} == {"/data"}
