"""docker/README.md: its tables, and its lines for the proxy."""

import re
import ssl
from pathlib import Path

import httpx

from tests.checks.docker.images import COMPOSE, DOCKERFILE, README, cells
from tests.checks.docker.proxy import proxied
from tests.ports import free_port
from tests.servers.fetch.authority import certificate
from tests.wire import PATIENCE


def test_the_readme_lists_every_image() -> None:
    targets = re.findall(r"^FROM runtime AS (\w+)$", DOCKERFILE.read_text(), re.MULTILINE)
    assert [row[0] for row in cells("Images")] == targets


def test_the_readme_lists_every_service() -> None:
    for (name, network, volume, limits), (service, said) in zip(
        cells("Compose"), COMPOSE["services"].items(), strict=True
    ):
        most = said["deploy"]["resources"]["limits"]
        mounted = [one.removesuffix(":/data") for one in said.get("volumes", []) if one.endswith(":/data")]
        assert name == service
        assert [network] == (said["networks"] if len(said["networks"]) == 1 else ["both"])
        assert [volume.strip("`")] == (mounted or ["–"])
        cpus = f"{most['cpus']} CPU{'s' if most['cpus'] != '1' else ''}"
        assert limits == f"{cpus}, {most['memory'].removesuffix('m')} MiB, {most['pids']} processes"


def test_every_link_has_a_target() -> None:
    pages = {page.name: page.read_text() for page in DOCKERFILE.parent.glob("*.md")}
    for name, text in pages.items():
        prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
        for path, heading in re.findall(r"\]\(([^)#]*)#?([^)]*)\)", prose):
            assert path.startswith("https://") or (DOCKERFILE.parent / path).exists(), f"{name}: {path}"
            if heading:
                assert heading in map(anchor, re.findall(r"^#+ (.*)", pages[path or name], re.MULTILINE)), heading


def anchor(heading: str) -> str:
    """What a link to a heading says."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def test_the_tls_example_is_valid(nginx: str, unpacked: Path) -> None:
    lines = re.search(r"```nginx\n(.*?)```", README, re.DOTALL)
    assert lines is not None
    shown = certificate(None, "localhost").write(unpacked / "certificate.pem")
    (unpacked / "key.pem").write_bytes(shown.read_bytes())
    port = free_port()
    tls = lines[1].replace("/run/secrets/", f"{unpacked}/").replace("listen 8443", f"listen 127.0.0.1:{port}")
    with proxied(nginx, {}, {"listen 8080;": f"listen 127.0.0.1:{free_port()}; {tls}"}):
        context = ssl.create_default_context(cafile=shown)
        answer = httpx.get(f"https://localhost:{port}/healthz", verify=context, trust_env=False, timeout=PATIENCE)
        assert answer.text == "ok\n"
