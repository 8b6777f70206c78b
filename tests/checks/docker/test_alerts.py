"""The example alerts: accepted by Prometheus, fired in tests, and based on metrics of /metrics."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.checks.docker.queries import exposed_in, families_in, missing, only_of_replicas, untold

HERE = Path(__file__).resolve().parent
RULES = HERE.parents[2] / "docker" / "alerts.yaml"
ALERTS: list[dict[str, Any]] = yaml.safe_load(RULES.read_text())["groups"][0]["rules"]
QUERIES = [alert["expr"] for alert in ALERTS]


@pytest.mark.parametrize("query", QUERIES, ids=[alert["alert"] for alert in ALERTS])
def test_metrics_of_an_alert_are_exposed(query: str, scraped: str, scraped_replicas: str) -> None:
    assert missing(query, exposed_in(scraped_replicas)) == []
    assert only_of_replicas(missing(query, exposed_in(scraped)))


def test_every_counter_of_ours_has_an_alert(scraped_replicas: str) -> None:
    assert untold({one for one in families_in(scraped_replicas) if one.startswith("mcp_")}, QUERIES) == []


def test_every_alert_has_a_summary_and_a_remedy() -> None:
    for alert in ALERTS:
        assert set(alert) == {"alert", "expr", "for", "labels", "annotations"}
        assert set(alert["annotations"]) == {"summary", "description"}
        assert alert["labels"]["severity"] in ("critical", "warning")


def test_prometheus_accepts_the_alerts_and_their_tests_pass(promtool: str, tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(RULES.read_text())
    (tmp_path / "tests.yaml").write_text((HERE / "alerts.yaml").read_text())
    for words in (["check", "rules", "rules.yaml"], ["test", "rules", "tests.yaml"]):
        done = subprocess.run(
            [promtool, *words], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_fires_in_a_test() -> None:
    tests = yaml.safe_load((HERE / "alerts.yaml").read_text())["tests"]
    fired = {case["alertname"] for test in tests for case in test["alert_rule_test"] if case.get("exp_alerts")}
    assert fired == {alert["alert"] for alert in ALERTS}
