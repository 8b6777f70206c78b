"""compose.replicas.yaml, given with compose.yaml: what is shared, who gets at it, and that no client is kept on one
replica. `test_store_container.py` runs its Redis, `test_replicas_proxy.py` its proxy."""

import json
import os
import re
from typing import Any

import jsonschema
import pytest

from shared.program.run import Options
from shared.program.settings.options import variable_of
from tests.checks.docker.images import COMPOSE, REPLICAS, ROOT, cells
from tests.checks.docker.proxy import CONF
from tests.checks.docker.test_compose import SCHEMA, SERVERS, test_each_is_confined

FILESYSTEM: dict[str, Any] = REPLICAS["services"]["filesystem"]
REDIS: dict[str, Any] = REPLICAS["services"]["redis"]
STICKY = r"ip_hash|\bhash\b|sticky|least_conn|cookie_|upstream \w+ \{"


@pytest.mark.skipif(
    not SCHEMA.is_file() and os.environ.get("CI") != "true",
    reason=f"needs the official schema {SCHEMA} (MCP_SPEC_DIR names another folder)",
)
def test_the_file_conforms_to_the_compose_schema() -> None:
    jsonschema.Draft7Validator(json.loads(SCHEMA.read_text())).validate(REPLICAS)


def test_a_server_of_the_other_file_has_three_replicas() -> None:
    assert set(REPLICAS["services"]) - {"redis"} == {"filesystem"} <= set(SERVERS)
    assert FILESYSTEM["deploy"] == {"replicas": 3}
    # One that has a name or a port of its own can't be there three times.
    assert not {"container_name", "ports", "hostname"} & (FILESYSTEM.keys() | SERVERS["filesystem"].keys())


def test_redis_is_confined_and_unpublished() -> None:
    test_each_is_confined(REDIS)
    assert REDIS["user"] != "0:0"
    assert "ports" not in REDIS
    assert REPLICAS["networks"] == {"store": {"internal": True}}
    assert [name for name, said in REPLICAS["services"].items() if "store" in said["networks"]] == list(
        REPLICAS["services"]
    )
    assert not [name for name, said in COMPOSE["services"].items() if "store" in said["networks"]]


def test_replicas_have_known_variables_and_secrets() -> None:
    known = {variable_of(name, "MCP") for name in Options.model_fields}
    assert set(FILESYSTEM["environment"]) <= known
    assert FILESYSTEM["environment"]["MCP_STORE"] == "redis://redis:6379/0"
    assert FILESYSTEM["depends_on"] == {"redis": {"condition": "service_healthy"}}


def test_secrets_are_in_ignored_files() -> None:
    (secret,) = FILESYSTEM["secrets"]
    assert REDIS["secrets"] == [secret]
    assert FILESYSTEM["environment"]["MCP_STORE_PASSWORD_FILE"] == f"/run/secrets/{secret}"
    files = [REPLICAS["secrets"][secret]["file"], *FILESYSTEM["env_file"]]
    assert {os.path.dirname(file) for file in files} == {"./secrets"}
    assert "docker/secrets/" in (ROOT / ".gitignore").read_text().splitlines()
    assert "MCP_STATE_KEY" not in FILESYSTEM["environment"]


def test_the_memory_limit_leaves_room_to_rewrite_the_redis_file() -> None:
    (most,) = (word.split()[1] for word in REDIS["command"] if word.startswith("--maxmemory "))
    assert (most, REDIS["deploy"]["resources"]["limits"]["memory"]) == ("512mb", "1g")


def test_the_readme_table_agrees_with_the_file() -> None:
    ((name, network, volume, limits),) = cells("Several replicas")
    most = REDIS["deploy"]["resources"]["limits"]
    assert (name, [network], [f"{volume}:/data"]) == ("redis", REDIS["networks"], REDIS["volumes"])
    assert limits == f"{most['cpus']} CPU, {most['memory'].removesuffix('g')} GiB, {most['pids']} processes"


def test_the_proxy_has_no_sticky_sessions() -> None:
    assert re.search(STICKY, CONF.read_text()) is None
