"""Accessibility faults that axe-core finds in a page."""

from functools import cache

from playwright.async_api import Frame, Page

from tests.checks.browser.hosts.peers import MODULES, require_node

__all__ = ["find_barriers", "find_faint"]

SERIOUS = {"serious", "critical"}
RUN = """async (rules) => {
  const runOnly = rules && { runOnly: rules };
  const found = await axe.run(document, { iframes: false, resultTypes: ["violations"], ...runOnly });
  return found.violations.map(({ id, impact, help, nodes }) => ({
    id, impact, help, nodes: nodes.map((node) => `${node.target.join(" ")}: ${node.failureSummary}`),
  }));
}"""


async def find_barriers(page: Page) -> list[str]:
    """What is serious or critical in a page and in its frames, of whatever origin: a line for each rule that is
    broken, and the first places."""
    return await _find(page, None)


async def find_faint(page: Page) -> list[str]:
    """Returns the same for colour contrast only, which depends on the theme."""
    return await _find(page, ["color-contrast"])


async def _find(page: Page, rules: list[str] | None) -> list[str]:
    barriers = [await _in_frame(frame, rules) for frame in page.frames if not frame.is_detached()]
    return [line for found in barriers for line in found]


async def _in_frame(frame: Frame, rules: list[str] | None) -> list[str]:
    # Not as a script in the page, which its policy would block.
    if not await frame.evaluate("() => globalThis.axe !== undefined"):
        await frame.evaluate(f"() => {{ {_axe()}\n }}")
    return [
        f"{rule['id']} ({rule['impact']}): {rule['help']}\n  " + "\n  ".join(rule["nodes"][:3])
        for rule in await frame.evaluate(RUN, rules)
        if rule["impact"] in SERIOUS
    ]


@cache
def _axe() -> str:
    require_node()
    return (MODULES / "axe-core" / "axe.min.js").read_text()
