"""Pages joined with their modules to one response, and errors of modules that can't be joined."""

import base64
import hashlib
import re
import subprocess
from pathlib import Path

import pytest

from servers.common.web.pages import PageError, assemble

PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>A page</title>
<link rel="stylesheet" href="theme.css">
<link rel="stylesheet" href="page.css"></head>
<body><script type="module" src="page.js"></script></body>
</html>
"""
MODULES = {
    "page.js": (
        'import { one, Two } from "./parts/middle.js";\nimport { three } from "./low.js";\n'
        "console.log(one, Two, three);\n"
    ),
    "parts/middle.js": 'import { three } from "../low.js";\nexport const one = three();\nexport class Two {}\n',
    "low.js": "// A comment.\nconst hidden = `a\n  b`;\nexport function three() {\n  return hidden;\n}\n",
    "theme.css": "/* A comment. */\nbody {\n  margin: 0;\n}\n",
    "page.css": "p { margin: 1px; }\n",
    "parts/middle.css": "i { margin: 2px; }\n",
}


def written(folder: Path, changed: dict[str, str]) -> Path:
    """A page in a folder, some of its files changed."""
    for name, text in ({"page.html": PAGE} | MODULES | changed).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder / "page.html"


def inlined(html: str, tag: str) -> list[str]:
    return re.findall(rf"<{tag}[^>]*>(.*?)</{tag}>", html, re.DOTALL)


def digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_each_module_is_inlined_once_after_its_imports(tmp_path: Path) -> None:
    (script,) = inlined(assemble(written(tmp_path, {})).html, "script")
    places = [script.index(text) for text in ("function three", "const one", "console.log")]
    assert places == sorted(places)
    assert script.count("function three") == 1
    assert not re.search(r"\b(import|export)\b|comment", script)


def test_the_joined_script_behaves_like_the_modules(node: Path, tmp_path: Path) -> None:
    page = written(tmp_path, {"page.js": MODULES["page.js"] + "const hidden = 1;\nconsole.log(hidden);\n"})
    (script,) = inlined(assemble(page).html, "script")
    (tmp_path / "joined.mjs").write_text(script)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    outputs = [
        subprocess.run([node, name], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=30).stdout
        for name in ("joined.mjs", "page.js")
    ]
    assert outputs[0] == outputs[1]
    assert outputs[0].startswith("a\n  b [class Two]")


def test_style_sheets_of_parts_are_between_theme_and_page(tmp_path: Path) -> None:
    page = assemble(written(tmp_path, {}))
    assert inlined(page.html, "style") == ["body {\nmargin: 0;\n}\ni { margin: 2px; }", "p { margin: 1px; }"]


def test_the_policy_allows_only_the_contents_of_the_page(tmp_path: Path) -> None:
    page = assemble(written(tmp_path, {}))
    assert page.scripts == tuple(map(digest, inlined(page.html, "script")))
    assert page.styles == tuple(map(digest, inlined(page.html, "style")))
    rules = dict(rule.split(" ", 1) for rule in page.policy(connect="'self'").split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == f"'{page.scripts[0]}'"
    assert rules["connect-src"] == "'self'"
    assert "unsafe" not in page.policy()


def test_a_page_is_assembled_once(tmp_path: Path) -> None:
    page = written(tmp_path, {})
    first = assemble(page)
    written(tmp_path, {"low.js": "broken"})
    assert assemble(page) is first
    assert first.size == len(first.html.encode())


BROKEN = [
    ("page.js", "import x from './low.js';\n", r"page\.js:1: an import must be one line"),
    ("page.js", 'import { three as x } from "./low.js";\n', r"page\.js:1: an import must be one line"),
    ("page.js", 'import { three } from "low";\n', r"page\.js:1: an import must be one line"),
    ("page.js", 'import {\n  three,\n} from "./low.js";\n', r"page\.js:1: an import must be one line"),
    ("page.js", 'import { four } from "./low.js";\n', r"page\.js: low\.js exports no four"),
    ("page.js", 'import { three } from "./missing.js";\n', r"missing\.js: .*No such file"),
    ("page.js", 'import { three } from "./low.js";\nconst three = 1;\n', r"three is both imported and declared"),
    ("low.js", 'import { one } from "./parts/middle.js";\nexport const three = 3;\n', r"circular import of"),
    ("low.js", "export const three = 3;\nexport class Two {}\n", r"middle\.js: low\.js exports a Two, too"),
    ("low.js", "\nexport default 1;\n", r"low\.js:2: unsupported form of export"),
    ("low.js", "export { three };\n", r"low\.js:1: unsupported form of export"),
    ("low.js", "export let three = 1;\n", r"low\.js:1: unsupported form of export"),
    ("low.js", "export const three = 1, four = 2;\n", r"low\.js:1: a top-level declaration has one name"),
    ("low.js", "const { a } = { a: 1 };\n", r"low\.js:1: a top-level declaration has one name"),
    ("low.js", "export const three = await 1;\n", r"low\.js:1: uses top-level await"),
    ("low.js", "export const three = () => import('./x.js');\n", r"low\.js:1: uses dynamic import"),
    ("low.js", "export const three = import.meta.url;\n", r"low\.js:1: uses import\.meta"),
    ("low.js", 'export const three = "</script>";\n', r"low\.js:1: contains text that ends or hides a script"),
    ("theme.css", "@import 'x.css';\n", r"theme\.css: a style sheet must not contain"),
    ("theme.css", "p { background: url(https://example.com) }\n", r"theme\.css: a style sheet must not contain"),
    ("page.html", PAGE.replace("<body>", "<body><script>1</script>"), r"page\.html:6: a script that is not a module"),
    ("page.html", PAGE.replace("<body>", "<body style='margin:0'>"), r"page\.html:6: a style that is not in a file"),
    ("page.html", PAGE.replace("<body>", "<body onload=go()>"), r"page\.html:6: an event handler in an attribute"),
    ("page.html", PAGE.replace("<body>", "<body><img src='//x.com/a'>"), r"page\.html:6: something from elsewhere"),
    ("page.html", PAGE.replace("page.js", "https://x.com/a.js"), r"page\.html:6: something from elsewhere"),
    (
        "page.html",
        PAGE.replace("</body>", PAGE[PAGE.index("<script") :]),
        r"page\.html: a page can have at most one <script",
    ),
    ("page.html", PAGE.replace(' href="page.css"', ' media="print" href="page.css"'), r"a style sheet is named by"),
]


def test_modules_that_can_not_be_joined_are_refused(tmp_path: Path) -> None:
    for number, (name, text, why) in enumerate(BROKEN):
        folder = tmp_path / str(number)
        folder.mkdir()
        with pytest.raises(PageError, match=why):
            assemble(written(folder, {name: text}))
