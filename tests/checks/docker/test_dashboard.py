"""The dashboard for Grafana: all metrics of /metrics and no others, in queries that Prometheus parses."""

import json
import re
import subprocess
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.checks.docker.queries import (
    OF_THE_SCRAPE,
    exposed_in,
    families_in,
    kept_labels,
    missing,
    only_of_replicas,
    untold,
)

DASHBOARD: dict[str, Any] = json.loads(
    (Path(__file__).resolve().parents[3] / "docker" / "grafana" / "dashboard.json").read_text()
)
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
VARIABLES = {one["name"] for one in DASHBOARD["templating"]["list"]}
TARGETS = [
    (panel["title"], target["expr"], target["legendFormat"]) for panel in PANELS for target in panel["targets"]
]


def settled(query: str) -> str:
    """The query as Grafana sends it."""
    query = query.replace("$__rate_interval", "5m")
    return re.sub(r"\$\{?(\w+)\}?", lambda name: ".*" if name[1] in VARIABLES else name[0], query)


QUERIES = [settled(query) for _, query, _ in TARGETS]


@pytest.mark.parametrize("query", QUERIES)
def test_metrics_of_a_panel_are_exposed(query: str, scraped: str, scraped_replicas: str) -> None:
    assert "$" not in query
    assert missing(query, exposed_in(scraped_replicas)) == []
    assert only_of_replicas(missing(query, exposed_in(scraped)))


def test_every_metric_is_on_the_dashboard(scraped: str, scraped_replicas: str) -> None:
    assert untold(families_in(scraped) | families_in(scraped_replicas), QUERIES) == []


@pytest.mark.parametrize(("title", "query", "legend"), TARGETS)
def test_a_legend_names_the_labels_of_its_query(title: str, query: str, legend: str) -> None:
    # A process is one of several workers, or the only one, which has no such label.
    named = set(re.findall(r"\{\{(\w+)\}\}", legend)) - {"worker"}
    kept = kept_labels(query) - {"le"}
    assert named >= kept, title
    assert named - kept <= (OF_THE_SCRAPE if not kept else set()), title


def test_prometheus_parses_every_query(promtool: str, tmp_path: Path) -> None:
    rules = [{"record": f"panel:{number}", "expr": query} for number, query in enumerate(QUERIES)]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    words = [promtool, "check", "rules", "rules.yaml"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_dashboard_is_for_grafana_11_with_any_data_source() -> None:
    assert DASHBOARD["schemaVersion"] == 39
    assert {"datasource", "job", "instance", "server"} == VARIABLES
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    for panel in PANELS:
        sources = [panel["datasource"], *(target["datasource"] for target in panel["targets"])]
        assert all(one == {"type": "prometheus", "uid": "${datasource}"} for one in sources), panel["title"]


def test_panels_do_not_overlap() -> None:
    for one, other in combinations([panel["gridPos"] for panel in DASHBOARD["panels"]], 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        assert beside or one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
