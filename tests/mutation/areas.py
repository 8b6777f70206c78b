"""Where a small mistake does harm that nobody sees at once, and the tests that are to notice it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Area:
    """Files that are changed, as patterns of their paths, and the tests that run for it."""

    files: tuple[str, ...]
    tests: tuple[str, ...]


HOSTS = ("changing", "clients", "config", "differences", "json_edits", "install", "toml_edits")
AREAS = {
    "protocol": Area(
        ("shared/protocol/*",), ("tests/protocol", "tests/server", "tests/extensions", "tests/test_transcripts.py")
    ),
    "limits": Area(
        (
            "shared/kit/expiry.py",
            "shared/server/limits.py",
            "shared/server/calls.py",
            "shared/server/thread_turns.py",
            "shared/stores/*",
            "shared/transports/http/connections.py",
            "shared/transports/http/limits.py",
            "shared/transports/http/quotas.py",
            "shared/transports/http/streams.py",
            "shared/transports/stdio.py",
        ),
        (
            "tests/transports",
            "tests/stores",
            "tests/server",
            "tests/kit/test_expiry.py",
            "tests/faults/test_amounts.py",
        ),
    ),
    "hosts": Area(("servers/bundle/hosts/*",), tuple(f"tests/bundle/test_{name}.py" for name in HOSTS)),
    "filesystem": Area(
        ("shared/kit/rooted/*", "servers/filesystem/edit/*"),
        ("tests/kit/rooted", "tests/servers/filesystem"),
    ),
    "sqlite": Area(("servers/sqlite/engine/*", "servers/sqlite/write/*"), ("tests/servers/sqlite",)),
    "fetch": Area(("servers/fetch/network/*", "servers/fetch/load/robots.py"), ("tests/servers/fetch",)),
    "prompts": Area(("servers/prompts/library/folder.py", "servers/prompts/write/*"), ("tests/servers/prompts",)),
}
