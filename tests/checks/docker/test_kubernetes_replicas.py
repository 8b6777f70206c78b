"""The manifests of several replicas: valid, consistent, and equal to compose.replicas.yaml."""

from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from tests.checks.docker.images import REPLICAS, ROOT
from tests.checks.docker.test_kubernetes import NEWEST, OLDEST

FOLDER = ROOT / "docker" / "kubernetes" / "replicas"


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text())
    return found


MANIFESTS = {path.name.split(".")[0]: read(path) for path in sorted(FOLDER.iterdir())}
DEPLOYMENT: dict[str, Any] = MANIFESTS["deployment"]["spec"]
REDIS: dict[str, Any] = MANIFESTS["redis-statefulset"]["spec"]
POD: dict[str, Any] = DEPLOYMENT["template"]["spec"]
(SERVER,) = POD["containers"]
(STORE,) = REDIS["template"]["spec"]["containers"]
PODS = pytest.mark.parametrize("pod", [POD, REDIS["template"]["spec"]], ids=["server", "redis"])


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize("name", MANIFESTS)
def test_manifests_conform_to_the_kubernetes_schema(name: str, version: str) -> None:
    kubernetes_validate.validate(MANIFESTS[name], version, strict=True)


def test_manifests_refer_to_each_other() -> None:
    labels = DEPLOYMENT["template"]["metadata"]["labels"]
    assert DEPLOYMENT["selector"]["matchLabels"] == labels
    assert MANIFESTS["service"]["spec"]["selector"] == labels
    assert MANIFESTS["disruption"]["spec"]["selector"]["matchLabels"] == labels
    assert MANIFESTS["networkpolicy"]["spec"]["podSelector"]["matchLabels"] == labels
    assert {tuple(one["labelSelector"]["matchLabels"].items()) for one in POD["topologySpreadConstraints"]} == {
        tuple(labels.items())
    }
    aim = MANIFESTS["autoscaler"]["spec"]["scaleTargetRef"]
    assert (aim["kind"], aim["name"]) == ("Deployment", MANIFESTS["deployment"]["metadata"]["name"])
    assert environment()["MCP_STORE"] == f"redis://{MANIFESTS['redis-service']['metadata']['name']}:6379/0"


def test_only_the_replicas_reach_redis() -> None:
    labels = REDIS["template"]["metadata"]["labels"]
    assert REDIS["selector"]["matchLabels"] == MANIFESTS["redis-service"]["spec"]["selector"] == labels
    policy = MANIFESTS["redis-networkpolicy"]["spec"]
    assert policy["podSelector"]["matchLabels"] == labels
    assert policy["egress"] == []
    (allowed,) = policy["ingress"]
    assert allowed["from"] == [{"podSelector": DEPLOYMENT["selector"]}]
    assert {"podSelector": {"matchLabels": labels}} in MANIFESTS["networkpolicy"]["spec"]["egress"][1]["to"]


def test_the_network_policy_of_replicas_limits_both_directions() -> None:
    spec = MANIFESTS["networkpolicy"]["spec"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    (allowed,) = spec["ingress"]
    assert allowed["from"] == [{"namespaceSelector": {"matchLabels": {"mcp-client": "true"}}}]
    *named, backends = spec["egress"]
    assert [{port["port"] for port in rule["ports"]} for rule in named] == [{53}, {6379}]
    assert backends == {"to": [{"namespaceSelector": {"matchLabels": {"mcp-backend": "true"}}}]}
    assert not [one for rule in spec["egress"] for one in rule["to"] if "ipBlock" in one]


def test_services_have_no_session_affinity() -> None:
    assert "sessionAffinity" not in MANIFESTS["service"]["spec"]
    assert "sessionAffinity" not in MANIFESTS["redis-service"]["spec"]


def test_two_replicas_keep_serving_during_updates() -> None:
    assert DEPLOYMENT["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    scale = MANIFESTS["autoscaler"]["spec"]
    least = MANIFESTS["disruption"]["spec"]["minAvailable"]
    assert least < DEPLOYMENT["replicas"] == scale["minReplicas"] < scale["maxReplicas"]
    pause = int(SERVER["lifecycle"]["preStop"]["exec"]["command"][1])
    assert POD["terminationGracePeriodSeconds"] > pause + 10
    assert (SERVER["readinessProbe"]["httpGet"]["path"], SERVER["livenessProbe"]["httpGet"]["path"]) == (
        "/readyz",
        "/healthz",
    )


@PODS
def test_pods_are_unprivileged(pod: dict[str, Any]) -> None:
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    for container in pod["containers"]:
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert {"cpu", "memory"} == set(container["resources"]["requests"])
        assert "memory" in container["resources"]["limits"]


@PODS
def test_secrets_come_from_the_secret(pod: dict[str, Any]) -> None:
    secret = MANIFESTS["secret"]
    assert set(secret["stringData"].values()) == {""}
    (volume,) = (one["secret"] for one in pod["volumes"] if "secret" in one)
    assert volume["secretName"] == secret["metadata"]["name"]
    assert {one["key"] for one in volume["items"]} <= set(secret["stringData"])
    assert {mount["name"] for mount in pod["containers"][0]["volumeMounts"]} >= {
        one["name"] for one in pod["volumes"]
    }


def test_the_state_key_and_secret_files_are_configured() -> None:
    (key,) = (one["valueFrom"]["secretKeyRef"] for one in SERVER["env"] if "valueFrom" in one)
    assert key == {"name": MANIFESTS["secret"]["metadata"]["name"], "key": "state-key"}
    (folder,) = (one["mountPath"] for one in SERVER["volumeMounts"] if one["name"] == "secrets")
    given = environment()
    assert given["MCP_TOKEN_FILE"] == f"{folder}/token"
    assert given["MCP_STORE_PASSWORD_FILE"] == f"{folder}/store-password"


def test_redis_and_replicas_agree_with_compose() -> None:
    composed = REPLICAS["services"]["redis"]
    assert STORE["image"] == composed["image"]
    assert STORE["args"] == [word.replace("$$", "$") for word in composed["command"]]
    assert STORE["readinessProbe"]["exec"]["command"] == [
        word.replace("$$", "$") for word in composed["healthcheck"]["test"][1:]
    ]


def environment() -> dict[str, str]:
    return {one["name"]: one["value"] for one in SERVER["env"] if "value" in one}
