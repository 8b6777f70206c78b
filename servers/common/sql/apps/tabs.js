// Panels, one of which is visible, with a tab for each.

import { h } from "../../web/dom.js";

let lastTab = 0;

/** The tabs of `[{label, panel}]`: an element to put before the panels, with `select(index)`. */
export function makeTabs(entries, label) {
  const list = h("div", { class: "tabs", role: "tablist", "aria-label": label });
  const tabs = entries.map(({ label: text, panel }, index) => {
    lastTab += 1;
    const id = `tab-${lastTab}`;
    panel.id ||= `${id}-panel`;
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", id);
    const act = { click: () => list.select(index), keydown: (event) => move(event, index) };
    return h("button", { id, type: "button", role: "tab", "aria-controls": panel.id, on: act }, text);
  });
  const move = (event, index) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      const next = (index + step + tabs.length) % tabs.length;
      list.select(next);
      tabs[next].focus();
    }
  };
  list.select = (chosen) => {
    tabs.forEach((tab, index) => {
      tab.setAttribute("aria-selected", String(index === chosen));
      tab.tabIndex = index === chosen ? 0 : -1;
      entries[index].panel.hidden = index !== chosen;
    });
    list.dispatchEvent(new CustomEvent("select", { detail: chosen }));
  };
  list.append(...tabs);
  list.select(0);
  return list;
}
