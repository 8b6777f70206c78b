"""Build hook that moves `shared` and `servers` under one name, `mcp_server_bundle`, in a wheel.

A checkout has both at its top. In site-packages other projects have folders of these names too, and the last one to
be installed would overwrite the other. So `shared` becomes the package itself, and `servers` a package in it:

    from shared.client import connect     from mcp_server_bundle.client import connect
    from servers.catalog import Entry     from mcp_server_bundle.servers.catalog import Entry

Only import lines change, in place, so the line numbers of a traceback are those of the checkout. An editable
installation is the checkout, with its names.

The page of a release on a package index needs the address of the repository. `make release` has it in the variable
REPOSITORY, such as https://github.com/USER/mcp-server-bundle; other builds know none.
"""

import ast
import os
import re
import shutil
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

NAME = "mcp_server_bundle"
MOVED = {"shared": NAME, "servers": f"{NAME}.servers"}
"""The name of each package in a wheel."""


class WheelHook(BuildHookInterface[BuilderConfig]):
    """The custom build hook that pyproject.toml names for wheels."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Include the moved files. `version` is "standard" or "editable"."""
        if version == "editable":
            return
        self._moved = Path(mkdtemp())
        move(Path(self.root), self._moved / NAME)
        build_data["force_include"][str(self._moved / NAME)] = NAME
        scripts = self.metadata.core.scripts
        scripts.update({name: f"{NAME}.{function}" for name, function in scripts.items()})

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the moved files."""
        if version != "editable":
            shutil.rmtree(self._moved)


class IndexHook(MetadataHookInterface):
    """The custom metadata hook that pyproject.toml names: README.md and the links of the page on a package index."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set `readme`, and `urls` if the repository is known."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        if repository := os.environ.get("REPOSITORY"):
            text = link(text, repository, list(metadata["scripts"]))
            metadata["urls"] = {
                "Repository": repository,
                "Documentation": f"{repository}/tree/HEAD/docs",
                "Changelog": f"{repository}/blob/HEAD/CHANGELOG.md",
                "Issues": f"{repository}/issues",
            }
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def link(text: str, repository: str, scripts: list[str]) -> str:
    """Return the Markdown with absolute links, and with a line for each script by which the MCP registry knows that
    the package belongs to the owner of the repository."""
    text = re.sub(r"(!\[[^]]*\]\()(?!\w+:|#)", rf"\g<1>{repository}/raw/HEAD/", text)
    text = re.sub(r"((?<!!)\[[^]]*\]\()(?!\w+:|#)", rf"\g<1>{repository}/blob/HEAD/", text)
    return text + "".join(f"\n<!-- mcp-name: {namespace(repository)}/{script} -->" for script in scripts) + "\n"


def namespace(repository: str) -> str:
    """Return the name that the MCP registry gives to the owner of a repository: `io.github.USER`. Raises ValueError
    for an address of another form."""
    owner = re.fullmatch(r"https://github\.com/([A-Za-z0-9-]+)/[\w.-]+", repository)
    if owner is None:
        raise ValueError(f"{repository!r} is not of the form https://github.com/USER/NAME")
    return f"io.github.{owner[1]}"


def move(root: Path, target: Path) -> None:
    """Copy both packages and the catalog of the checkout `root` to the folder `target`, with their new names."""
    caches = shutil.ignore_patterns("__pycache__", ".*")
    shutil.copytree(root / "shared", target, ignore=caches)
    shutil.copytree(root / "servers", target / "servers", ignore=caches)
    shutil.copy(root / "catalog.yaml", target / "servers")
    for path in target.rglob("*.py"):
        path.write_bytes(rename(path.read_text(encoding="utf-8")).encode())


def rename(source: str) -> str:
    """Return a Python source with the new names in its imports.

    Raises ValueError for `import shared.text`, which binds the name `shared` for the rest of the source, and for an
    import that is not written as formatters write it.
    """
    lines = source.split("\n")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import) and any(_top(alias.name) in MOVED for alias in node.names):
            raise ValueError(f"line {node.lineno}: write `from ... import` instead of `{ast.unparse(node)}`")
        if isinstance(node, ast.ImportFrom) and not node.level and (top := _top(node.module or "")) in MOVED:
            line = lines[node.lineno - 1]
            lines[node.lineno - 1] = renamed = line.replace(f"from {top}", f"from {MOVED[top]}", 1)
            if renamed == line:
                raise ValueError(f"line {node.lineno}: write `from {node.module}` with one space, on one line")
    return "\n".join(lines)


def _top(module: str) -> str:
    return module.partition(".")[0]
