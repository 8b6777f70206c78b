"""The installation of this copy of the bundle, and the command that adds an extra to it with the same installer.

The project is not in any registry, so commands must not use its bare name: a package with that name would belong to
someone else. Each command contains the path or URL of the wheel or checkout from which this copy was installed, as
recorded by its installer (PEP 610, `direct_url.json`). Commands of uv and pipx also list the installed extras, which
these installers would drop otherwise.
"""

import json
import os
import re
import shlex
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

NAME = "mcp-server-bundle"
_ROOT = Path(__file__).resolve().parents[2]
# Names of directories in uv's cache that contain whole environments.
_EPHEMERAL_DIRECTORY = re.compile(r"(archive|environments|builds)-v\d+")
# Requirements with more conditions are ignored: such a library need not be installed.
_EXTRA_REQUIREMENT = re.compile(r"^Requires-Dist: ([\w.-]+)[^;\n]*; extra == '([\w-]+)'$", re.MULTILINE)


class Installation(NamedTuple):
    """A Python environment, and the bundle in it."""

    python: Path
    source: str | None
    """The path or URL, in a form that pip accepts, from which the bundle was installed; None if the installer has not
    recorded it."""
    editable: bool = False
    site_packages: Path | None = None
    """The directory with packages that contains the bundle; None for a checkout."""

    @classmethod
    def from_site(cls, python: Path, site_packages: Path) -> "Installation":
        """Return the installation whose packages are in the directory `site_packages`."""
        record = next(site_packages.glob(_dist_info_glob("direct_url.json")), None)
        direct_url = json.loads(record.read_text(encoding="utf-8")) if record is not None else {}
        url = direct_url.get("url")
        source = url if isinstance(url, str) else None
        parts = urlsplit(source or "")
        if parts.scheme == "file":
            path = unquote(parts.path)
            # On Windows there is a slash before the drive letter.
            source = str(Path(path[1:] if re.match(r"/[A-Za-z]:", path) else path))
        elif source is not None:
            if repository := direct_url.get("vcs_info"):
                revision = repository.get("requested_revision") or repository["commit_id"]
                source = f"{repository['vcs']}+{source}@{revision}"
            if "subdirectory" in direct_url:
                source = f"{source}#subdirectory={direct_url['subdirectory']}"
        return cls(python, source, direct_url.get("dir_info", {}).get("editable", False), site_packages)

    @property
    def is_ephemeral(self) -> bool:
        """True if the environment is in uv's cache, like the environments of uvx."""
        return is_ephemeral(self.python)

    def specification(self, *extras: str) -> str:
        """Return the requirement by which this copy, with these extras, can be installed again. Raises ValueError if
        its source is missing or unknown."""
        is_path = self.source is not None and Path(self.source).is_absolute()
        if self.source is None or (is_path and not Path(self.source).exists()):
            raise ValueError("the wheel or checkout from which this copy was installed is missing or unknown")
        extras_suffix = f"[{','.join(extras)}]" if extras else ""
        return f"{self.source}{extras_suffix}" if is_path else f"{NAME}{extras_suffix} @ {self.source}"

    def install_command(self, *extras: str, reinstall: bool = False) -> str:
        """Return the command that adds `extras` to the installed extras; with `reinstall`, it also installs the
        bundle's own files again."""
        words, keeps_extras = self._installer(reinstall)
        installed_extras = (
            [] if keeps_extras else [extra for extra, libraries in self.missing_libraries().items() if not libraries]
        )
        requested = list(extras) if keeps_extras else sorted({*installed_extras, *extras})
        requested = ["all"] if "all" in requested else requested
        try:
            requirement, suffix = self.specification(*requested), ""
        except ValueError:
            requirement, suffix = (
                f"WHEEL[{','.join(requested)}]" if requested else "WHEEL",
                ", where WHEEL is the bundle's wheel",
            )
        program = [Path(sys.argv[0]).name] if self.is_ephemeral else []
        return shell_line([*words, requirement, *program]) + suffix

    def _installer(self, reinstall: bool) -> tuple[list[str], bool]:
        """Return the install command without the requirement, and whether it keeps installed extras."""
        environment = self.python.parent.parent
        if self.is_ephemeral:
            return ["uvx", *(["--refresh"] if reinstall else []), "--from"], False
        if (environment / "uv-receipt.toml").is_file():
            return ["uv", "tool", "install", *(["--reinstall"] if reinstall else [])], False
        if (environment / "pipx_metadata.json").is_file():
            return ["pipx", "install", "--force"], False
        words, force = [str(self.python), "-m", "pip", "install"], "--force-reinstall"
        if self.python == Path(sys.executable) and find_spec("pip") is None:
            # uv creates environments without pip.
            words, force = ["uv", "pip", "install", "--python", str(self.python)], "--reinstall"
        return [*words, *([force, "--no-deps"] if reinstall else []), *(["-e"] if self.editable else [])], True

    def missing_libraries(self) -> dict[str, list[str]]:
        """Return the missing libraries of each extra, whatever their versions; empty for a checkout."""
        record = (
            None if self.site_packages is None else next(self.site_packages.glob(_dist_info_glob("METADATA")), None)
        )
        if self.site_packages is None or record is None:
            return {}
        present = {path.name.partition("-")[0].lower() for path in self.site_packages.glob("*.dist-info")}
        missing: dict[str, list[str]] = {}
        for library, extra in _EXTRA_REQUIREMENT.findall(record.read_text(encoding="utf-8")):
            is_present = re.sub(r"[-_.]+", "_", library).lower() in present
            missing.setdefault(extra, []).extend([] if is_present else [library])
        return missing


def this_installation() -> Installation:
    """Return the running installation."""
    python = Path(sys.executable)
    if (_ROOT / "pyproject.toml").is_file():
        return Installation(python, str(_ROOT), editable=True)
    return Installation.from_site(python, _ROOT)


def is_ephemeral(path: Path) -> bool:
    """Return True if a path is in uv's cache, which `uv cache clean`, and from time to time uv itself, empties."""
    return any(_EPHEMERAL_DIRECTORY.fullmatch(part) for part in path.parts)


def shell_line(words: Sequence[str]) -> str:
    """Return a command as a user would type it."""
    if os.name == "posix":
        return shlex.join(words)
    return " ".join(f'"{word}"' if re.search(r"[^\w.:\\/@=+-]", word) else word for word in words)


def _dist_info_glob(file: str) -> str:
    return f"{NAME.replace('-', '_')}-*.dist-info/{file}"
