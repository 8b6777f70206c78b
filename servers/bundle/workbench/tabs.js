// Several views of one thing, one of which is shown.
import { h } from "../../common/web/dom.js";

let madeTabs = 0;

/** Tabs for `[{label, make}]`; each view is created when it is first shown. A single view needs no tabs. */
export function tabbed(views, label) {
  if (views.length === 1) return views[0].make();
  const id = `tabs-${(madeTabs += 1)}`;
  const list = h("div", { role: "tablist", class: "tabs", "aria-label": label });
  const panel = h("div", { role: "tabpanel", id, tabindex: "-1" });
  const made = new Map();
  const tabs = views.map((view, at) => {
    const choose = () => select(at);
    return h("button", {
      type: "button",
      role: "tab",
      id: `${id}-${at}`,
      "aria-controls": id,
      text: view.label,
      on: { click: choose },
    });
  });
  const select = (at) => {
    if (!made.has(at)) made.set(at, views[at].make());
    panel.replaceChildren(made.get(at));
    panel.setAttribute("aria-labelledby", tabs[at].id);
    tabs.forEach((tab, number) => {
      tab.setAttribute("aria-selected", String(number === at));
      tab.tabIndex = number === at ? 0 : -1;
    });
  };
  list.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = (tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length;
    select(next);
    tabs[next].focus();
  });
  list.append(...tabs);
  // Elements can be measured only while they are on the page.
  queueMicrotask(() => select(0));
  return h("div", { class: "tabbed" }, list, panel);
}
