"""The suite that is installed is the pinned one."""

import json

from tests.checks.conformance.suite import FOLDER, PACKAGE, pinned_version


def test_the_lock_has_the_pinned_suite_and_names_no_registry() -> None:
    text = (FOLDER / "package-lock.json").read_text()
    assert json.loads(text)["packages"][f"node_modules/{PACKAGE}"]["version"] == pinned_version()
    assert '"resolved"' not in text
