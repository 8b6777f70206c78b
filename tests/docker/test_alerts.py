"""The example alerts: Prometheus takes them, each fires when it should, and all they ask for is in /metrics."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.docker.images import TOKEN
from tests.faults.raw import FILES, Raw, call, stateless
from tests.faults.test_http_process import listening, post
from tests.wire import PATIENCE

HERE = Path(__file__).resolve().parent
RULES = HERE.parents[1] / "docker" / "alerts.yaml"
ALERTS: list[dict[str, Any]] = yaml.safe_load(RULES.read_text())["groups"][0]["rules"]
OF_THE_SCRAPE = {"up", "job", "instance"}
"""What Prometheus itself adds."""
SELECTOR = re.compile(r"\b(up|(?:mcp|process)_\w+)(?:\{([^}]*)\})?")
BY = re.compile(r"sum by \(([^)]*)\)")


@pytest.fixture(scope="module")
def exposed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What a server says that has refused a request and failed a call."""
    environment = {**os.environ, "MCP_TOKEN": TOKEN}
    authorization = {"authorization": f"Bearer {TOKEN}"}
    folder = tmp_path_factory.mktemp("files")
    options = ["--transport", "http", "--port", "0", "--audit", str(folder.parent / "audit")]
    with Raw([*FILES, str(folder), *options], env=environment) as server:
        url = listening(server)
        failing = stateless(call(1, "get_file_info", path=str(folder / "missing")))
        assert post(url, failing).status_code == 401
        assert post(url, failing, **authorization).json()["result"]["isError"] is True
        metrics = url.removesuffix("/mcp") + "/metrics"
        return httpx.get(metrics, headers=authorization, trust_env=False, timeout=PATIENCE).text


@pytest.mark.slow
@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_what_an_alert_asks_for_is_there(alert: dict[str, Any], exposed: str) -> None:
    wanted_by_all = {name.strip() for names in BY.findall(alert["expr"]) for name in names.split(",")}
    for metric, selectors in SELECTOR.findall(alert["expr"]):
        samples = re.findall(rf"^{metric}(?:\{{(.*)\}})? ", exposed, re.MULTILINE)
        assert samples or metric in OF_THE_SCRAPE, metric
        labels = {label for sample in samples for label in re.findall(r"(\w+)=", sample)}
        asked = set(re.findall(r"(\w+)=", selectors)) | wanted_by_all
        assert asked - OF_THE_SCRAPE <= labels, metric


def test_every_alert_says_what_it_is_about_and_what_to_do() -> None:
    for alert in ALERTS:
        assert set(alert) == {"alert", "expr", "for", "labels", "annotations"}
        assert set(alert["annotations"]) == {"summary", "description"}
        assert alert["labels"]["severity"] in ("critical", "warning")


def test_prometheus_takes_them_and_they_fire_when_they_should(promtool: str, tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(RULES.read_text())
    (tmp_path / "tests.yaml").write_text((HERE / "alerts.yaml").read_text())
    for words in (["check", "rules", "rules.yaml"], ["test", "rules", "tests.yaml"]):
        done = subprocess.run(
            [promtool, *words], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_is_seen_to_fire() -> None:
    tests = yaml.safe_load((HERE / "alerts.yaml").read_text())["tests"]
    fired = {case["alertname"] for test in tests for case in test["alert_rule_test"] if case.get("exp_alerts")}
    assert fired == {alert["alert"] for alert in ALERTS}
