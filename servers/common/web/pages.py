"""Assembles one HTML file from a page, its style sheets and its modules, with the digests for its content security
policy.

A single file is fastest and safest: the page loads nothing else, so its policy need not allow anything else. Besides,
a host that shows an app page gives it no origin from which it could load a second file.
"""

import base64
import functools
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from .modules import PageError, join_modules, read_modules

__all__ = ["Page", "PageError", "assemble"]

_STYLE = re.compile(r'<link rel="stylesheet" href="([\w./-]+\.css)">')
_SCRIPT = re.compile(r'<script type="module" src="([\w./-]+\.js)"></script>')
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_FORBIDDEN = {
    "a script that is not a module file": re.compile(r"<script(?! type=\"module\" src=)", re.IGNORECASE),
    "a style that is not in a file": re.compile(r"<style|\sstyle\s*=", re.IGNORECASE),
    "an event handler in an attribute": re.compile(r"<[^>]*\son\w+\s*=", re.IGNORECASE),
    "something from elsewhere": re.compile(r"\s(?:src|href|action)\s*=\s*[\"']?(?!data:)(?:\w+:|//)", re.IGNORECASE),
}


@dataclass(frozen=True)
class Page:
    """An assembled page: its HTML, and the digests of its scripts and styles as in a content security policy."""

    html: str
    scripts: tuple[str, ...]
    styles: tuple[str, ...]

    @functools.cached_property
    def size(self) -> int:
        """Size of the page in bytes."""
        return len(self.html.encode())

    def policy(self, *, connect: str = "'none'", images: str = "data:") -> str:
        """Return the strictest content security policy under which the page works.

        The page may connect to the sources `connect`, and show images from the sources `images`.
        """
        rules = {
            "default-src": "'none'",
            "script-src": " ".join(f"'{digest}'" for digest in self.scripts) or "'none'",
            "style-src": " ".join(f"'{digest}'" for digest in self.styles) or "'none'",
            "img-src": images,
            "connect-src": connect,
            "base-uri": "'none'",
            "form-action": "'none'",
            "frame-ancestors": "'none'",
            # With these two, assigning a string as HTML raises an error in the browser.
            "require-trusted-types-for": "'script'",
            "trusted-types": "'none'",
        }
        return "; ".join(f"{name} {value}" for name, value in rules.items())


@functools.cache
def assemble(path: Path) -> Page:
    """Assemble the page whose HTML file is at `path`. The result is cached. Raises PageError if a file breaks a rule.

    A page must reference style sheets exactly as `<link rel="stylesheet" href="x.css">`, and at most one module as
    `<script type="module" src="x.js"></script>`. `modules.py` contains the rules for modules. If there is a style
    sheet with the name of a module in its folder, it is added automatically.
    """
    html = _read(path)
    for fault, pattern in _FORBIDDEN.items():
        match = pattern.search(html)
        if match:
            raise PageError(f"{path}:{html.count(chr(10), 0, match.start()) + 1}: {fault}")
    if len(re.findall(r"<script", html)) != len(_SCRIPT.findall(html)) or len(_SCRIPT.findall(html)) > 1:
        raise PageError(f'{path}: a page can have at most one <script type="module" src="x.js"></script>')
    if html.count("stylesheet") != len(_STYLE.findall(html)):
        raise PageError(f'{path}: a style sheet is named by <link rel="stylesheet" href="x.css">')
    modules = [module for name in _SCRIPT.findall(html) for module in read_modules(path.parent / name)]
    linked = [(path.parent / name).resolve() for name in _STYLE.findall(html)]
    module_sheets = [sheet for module in modules if (sheet := module.path.with_suffix(".css")).exists()]
    # The style sheets of modules come after the theme (the first linked sheet), whose variables they use, and before
    # the sheets of the page, which override them.
    sheets = list(dict.fromkeys([*linked[:1], *(part for part in module_sheets if part not in linked), *linked[1:]]))
    if sheets and not linked:
        raise PageError(f"{path}: it names no style sheet, but its modules do")
    texts = {sheet: _read_style(sheet) for sheet in sheets}
    theme = "\n".join(texts[sheet] for sheet in sheets if sheet not in linked[1:])
    styles = [theme, *(texts[sheet] for sheet in linked[1:])] if linked else []
    scripts = [join_modules(modules)] if modules else []
    # Replace by functions, since `sub` would interpret backslashes in a replacement string.
    style_texts = iter(styles)
    html = _STYLE.sub(lambda _: f"<style>{next(style_texts)}</style>", html)
    html = _SCRIPT.sub(lambda _: f'<script type="module">{scripts[0]}</script>', html)
    return Page(html, tuple(map(_digest, scripts)), tuple(map(_digest, styles)))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PageError(f"{path}: {error}") from None


def _read_style(path: Path) -> str:
    """Return a style sheet without comments, indentation and empty lines."""
    text = _COMMENT.sub("", _read(path))
    if re.search(r"</style|@import|url\((?![\"']?data:)", text, re.IGNORECASE):
        raise PageError(f"{path}: a style sheet must not contain </style, or load anything but data: URLs")
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
