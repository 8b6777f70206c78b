"""The manifests for Kubernetes: valid, consistent, and with a configuration that the servers accept."""

import os
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from tests.checks.docker.probing import probe, until_ready
from tests.raw import Raw, listening

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted((ROOT / "docker" / "kubernetes").glob("*.*"))
MANIFESTS: dict[str, dict[str, Any]] = {path.name.split(".")[0]: yaml.safe_load(path.read_text()) for path in FILES}
OLDEST, NEWEST = "1.29", kubernetes_validate.latest_version()
POD: dict[str, Any] = MANIFESTS["deployment"]["spec"]["template"]["spec"]
SERVERS: dict[str, Any] = POD["containers"][0]


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize("name", MANIFESTS)
def test_manifests_conform_to_the_kubernetes_schema(name: str, version: str) -> None:
    kubernetes_validate.validate(MANIFESTS[name], version, strict=True)


def test_manifests_refer_to_each_other() -> None:
    labels = MANIFESTS["deployment"]["spec"]["template"]["metadata"]["labels"]
    for selector in (
        MANIFESTS["deployment"]["spec"]["selector"]["matchLabels"],
        MANIFESTS["service"]["spec"]["selector"],
        MANIFESTS["networkpolicy"]["spec"]["podSelector"]["matchLabels"],
    ):
        assert selector == labels
    volumes = {volume["name"]: volume for volume in POD["volumes"]}
    assert volumes["data"]["persistentVolumeClaim"]["claimName"] == MANIFESTS["volume"]["metadata"]["name"]
    assert volumes["configuration"]["configMap"]["name"] == MANIFESTS["configmap"]["metadata"]["name"]
    assert volumes["token"]["secret"]["secretName"] == MANIFESTS["secret"]["metadata"]["name"]
    assert {mount["name"] for mount in SERVERS["volumeMounts"]} == set(volumes)


def test_the_network_policy_selects_namespaces_by_label() -> None:
    spec = MANIFESTS["networkpolicy"]["spec"]
    clients, backends = ({"matchLabels": {label: "true"}} for label in ("mcp-client", "mcp-backend"))
    (allowed,) = spec["ingress"]
    assert allowed["from"] == [{"podSelector": clients}, {"namespaceSelector": clients}]
    assert {"to": [{"namespaceSelector": backends}]} in spec["egress"]


def test_the_deployment_has_one_unprivileged_replica() -> None:
    assert MANIFESTS["deployment"]["spec"]["replicas"] == 1
    assert MANIFESTS["deployment"]["spec"]["strategy"] == {"type": "Recreate"}
    assert POD["securityContext"]["runAsNonRoot"] is True
    assert POD["automountServiceAccountToken"] is False
    for container in [*POD["initContainers"], *POD["containers"]]:
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def moved(folder: Path) -> str:
    """The configuration with its places in `folder`, as a pod would have them."""
    config: str = MANIFESTS["configmap"]["data"]["bundle.yaml"]
    return config.replace("/run/secrets/mcp", f"{folder}/secret").replace("/data", f"{folder}/data")


def environment() -> dict[str, str]:
    return {**os.environ, "MCP_HOST": "0.0.0.0", "MCP_PORT": "0", "PYTHONPATH": str(ROOT)}


def test_the_servers_accept_the_configuration(tmp_path: Path) -> None:
    for folder in ("data/files", "data/prompts", "secret"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "secret" / "token").write_text("hunter2")
    config = tmp_path / "bundle.yaml"
    config.write_text(moved(tmp_path))
    with Raw([sys.executable, "-m", "servers", "serve", "--config", str(config)], env=environment()) as server:
        url = listening(server).replace("0.0.0.0", "127.0.0.1").rstrip("/")
        until_ready(url + SERVERS["readinessProbe"]["httpGet"]["path"])
        assert probe(url + SERVERS["livenessProbe"]["httpGet"]["path"]) == 200
        server.process.terminate()
        assert server.wait() == 0


def test_the_servers_refuse_the_example_token(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "token").write_text(MANIFESTS["secret"]["stringData"]["token"])
    config = tmp_path / "bundle.yaml"
    config.write_text(moved(tmp_path).split("servers:")[0] + "servers: {fetch: }\n")
    with Raw([sys.executable, "-m", "servers", "serve", "--config", str(config)], env=environment()) as server:
        assert server.wait() == 2
        assert "is empty" in server.stderr()
