"""Shows panels, that is, text that a control of the page opens: tab panels, answers in an accordion, text that a
button discloses.

A panel is hidden until its control is used, but it is still content. So it is shown if it has a visible control.
Controls are recognized by `aria-controls` and the attributes that scripts use instead, by the position of a button
just before the text that it discloses, by the order of the tabs in a list, or by repetition (`repeated`). Content
that a control opens over the page, such as menus and dialogs, is not a panel. Text that the control would not show
stays hidden: text off the screen, or in the color of its background.

The label of a tab is put at the beginning of its panel. A button that discloses the text after it becomes bold text.
"""

from collections.abc import Callable, Iterator
from itertools import islice

from lxml.etree import Element, SubElement
from lxml.html import HtmlElement

from ..tree import HEADINGS, drop, has_text, is_alone, length, names_in, outermost, squeeze
from .repeated import repeated_panels

_TARGETS = ("aria-controls", "data-bs-target", "data-target", "commandfor", "popovertarget")
_TOGGLES = names_in("tab pill collapse")
_CONTROLS = (
    "//*[@aria-controls or @data-bs-target or @data-target or @commandfor or @popovertarget"
    " or @data-toggle or @data-bs-toggle or @role='tab']"
)
_NO_PANELS = names_in("nav dialog menu select datalist")
_NO_PANEL_ROLES = names_in("dialog alertdialog menu menubar listbox navigation search tooltip status alert log")
_NO_CONTROL_ROLES = names_in("combobox searchbox menuitem")
_MAX_ELEMENTS = 20
"""Maximum number of elements in the line of a button, and of texts in which the label of a panel is searched."""
_MAX_LABEL = 200
"""Maximum number of characters of a label."""
_PANEL_LEVELS = 3
"""The panels of a list of tabs are searched in this many elements that enclose the list."""

Predicate = Callable[[HtmlElement], bool]
Hidden = dict[HtmlElement, None]
"""Elements in page order, none inside another."""


def open_panels(root: HtmlElement, is_hidden: Predicate, stays_hidden: Predicate) -> tuple[Hidden, set[HtmlElement]]:
    """Label the panels of a page. Return the elements that stay hidden (only the outermost ones), and the panels that
    must be shown.

    `stays_hidden` returns True if an element would still be hidden after a control had opened it.
    """
    controls = _controls(root)
    opened: set[HtmlElement] = set()
    hidden: Hidden = {}
    pending = outermost(root, is_hidden)
    while pending:
        hidden.update(dict.fromkeys(pending))
        repeated = repeated_panels(pending, hidden)
        opened_now = [
            panel
            for panel in pending
            if (
                panel in repeated
                or any(
                    _is_visible(control, hidden) for control in (*controls.get(panel, []), *_control_before(panel))
                )
            )
            and _is_panel(panel)
            and not stays_hidden(panel)
        ]
        for panel in opened_now:
            del hidden[panel]
        opened.update(opened_now)
        pending = [inner for panel in opened_now for child in panel for inner in outermost(child, is_hidden)]
    for panel, panel_controls in controls.items():
        if _is_panel(panel) and _is_visible(panel, hidden):
            _show_label(panel, [control for control in panel_controls if _is_visible(control, hidden)])
    for panel in opened:
        for control in _control_before(panel):
            _embolden(control)
    return hidden, opened


def _controls(root: HtmlElement) -> dict[HtmlElement, list[HtmlElement]]:
    """Return the controls of each panel."""
    named: dict[str, list[HtmlElement]] = {}
    unnamed: dict[HtmlElement, list[HtmlElement]] = {}
    for control in root.xpath(_CONTROLS):
        if control.get("role") in _NO_CONTROL_ROLES or control.get("aria-haspopup") not in (None, "false"):
            continue
        names = list(_target_names(control))
        for name in names:
            named.setdefault(name, []).append(control)
        if not names and control.get("role") == "tab":
            tabs = next(control.iterancestors(), control)
            tabs = next((element for element in control.iterancestors() if element.get("role") == "tablist"), tabs)
            unnamed.setdefault(tabs, []).append(control)
    panels: dict[HtmlElement, list[HtmlElement]] = {}
    if named:
        for panel in root.iter():
            name = panel.get("id")
            if name in named:
                panels[panel] = [control for control in named.pop(name) if control is not panel]
    for tabs, controls in unnamed.items():
        for panel, control in zip(_panels_beside(tabs, len(controls)), controls, strict=False):
            panels.setdefault(panel, [control])
    return panels


def _target_names(control: HtmlElement) -> Iterator[str]:
    """Yield the ids that a control refers to."""
    for attribute in _TARGETS:
        yield from (name.removeprefix("#") for name in (control.get(attribute) or "").split())
    is_toggle = (control.get("data-bs-toggle") or control.get("data-toggle")) in _TOGGLES
    link = control.get("href") or next((inner.get("href") or "" for inner in control.iter("a")), "")
    if (is_toggle or control.get("role") == "tab") and link.startswith("#") and len(link) > 1:
        yield link[1:]


def _panels_beside(tabs: HtmlElement, count: int) -> list[HtmlElement]:
    """Return the panels for tabs that name no panel, in page order: those in the nearest enclosing element with
    panels, if there are as many panels as tabs."""
    enclosing = tabs
    for _ in range(_PANEL_LEVELS):
        enclosing = enclosing.getparent()
        if enclosing is None:
            break
        panels = [panel for panel in enclosing.iter() if panel.get("role") == "tabpanel"]
        if panels:
            return panels if len(panels) == count else []
    return []


def _is_panel(element: HtmlElement) -> bool:
    return element.tag not in _NO_PANELS and element.get("role") not in _NO_PANEL_ROLES


def _is_visible(element: HtmlElement, hidden: Hidden) -> bool:
    return element not in hidden and hidden.keys().isdisjoint(element.iterancestors())


def _control_before(panel: HtmlElement) -> list[HtmlElement]:
    """Return the button that is alone on the line before a panel and has `aria-expanded`, as a list of one; an empty
    list if there is none."""
    before = panel.getprevious()
    if before is None or squeeze(before.tail):
        return []
    elements = list(islice(before.iter(), _MAX_ELEMENTS + 1))
    if len(elements) > _MAX_ELEMENTS or not has_text(before):
        return []
    # The browser itself opens a panel that is hidden "until-found", so its button needs no attribute.
    by_browser = (panel.get("hidden") or "").lower() == "until-found"
    return [
        button
        for button in elements
        if (button.get("aria-expanded") is not None or (by_browser and button.tag in ("button", "summary")))
        and length(button) == length(before)
    ][:1]


def _show_label(panel: HtmlElement, controls: list[HtmlElement]) -> None:
    """Put the label of a tab into its panel, or make the button before a panel bold."""
    if not controls or not has_text(panel):
        return
    control = controls[0]
    if control.get("role") != "tab" and (control.get("data-bs-toggle") or control.get("data-toggle")) == "collapse":
        _embolden(control)
    elif control.get("role") == "tab" or control.get("data-bs-toggle") or control.get("data-toggle"):
        words = squeeze(control.text_content())[:_MAX_LABEL]
        if not any(sign.isalpha() for sign in words) or panel in control.iterancestors():
            return
        drop(control)
        texts = map(squeeze, islice(panel.itertext(), _MAX_ELEMENTS))
        if next(filter(None, texts), "").casefold() != words.casefold():
            label = Element("p")
            SubElement(label, "b").text = words
            label.tail, panel.text = panel.text, None
            panel.insert(0, label)
    elif _is_before(control, panel):
        _embolden(control)


def _is_before(control: HtmlElement, panel: HtmlElement) -> bool:
    """Return True if a panel follows its control, or an element that contains only the control."""
    while is_alone(control):
        control = control.getparent()
    return control.getnext() is panel


def _embolden(control: HtmlElement) -> None:
    """Turn a button into bold text, since it is the heading of the text after it."""
    if control.get("role") == "button":
        del control.attrib["role"]
        for anchor in control.iter("a"):
            anchor.tag = "a" if anchor.get("href") else "span"
    if control.tag == "button" and not any(ancestor.tag in HEADINGS for ancestor in control.iterancestors()):
        control.tag = "b"
