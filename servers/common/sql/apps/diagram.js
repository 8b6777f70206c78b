// The diagram of a database's tables, to pan and zoom.
//
// Only the visible part is drawn. At a distance a box has only its name; if there are too many boxes to read, all
// are one path. So a database with 2,000 tables has no more elements than one with 500.

import { clear, h, svg } from "../../web/dom.js";
import { boxShape, linkPath, makeBox, outlinePath } from "./boxes.js";
import { Camera } from "./camera.js";
import { placeBoxes } from "./layout.js";

const MOST_DETAILED = 100;
const MOST_NAMED = 500;
const MOST_LINKS = 5_000;
const READABLE = 0.5;
const LETTERS = [15, 20, 26, 34, 44, 56];

/** Shows tables and their keys; dispatches `choose`, with the table's index as `detail`, for a selection. */
export class SchemaDiagram extends HTMLElement {
  #boxes = [];
  #links = [];
  #size = { width: 0, height: 0 };
  #drawn = new Map();
  #letters = null;
  #chosen = null;
  #reached = 0;
  #fitted = false;
  #surface = svg("svg", { class: "drawing", tabindex: "0", role: "group" });
  #scene = svg("g");
  #outlines = svg("path", { class: "outlines" });
  #lines = svg("path", { class: "link" });
  #marked = svg("path", { class: "link marked" });
  #tables = svg("g");
  #camera = new Camera(this.#surface, () => this.#draw());

  connectedCallback() {
    if (this.firstChild !== null) {
      return;
    }
    const zoom = h("div", { class: "zoom", role: "group", "aria-label": "Zoom" });
    zoom.append(
      zoomButton("Zoom in", "+", () => this.#camera.zoomIn()),
      zoomButton("Zoom out", "−", () => this.#camera.zoomOut()),
      zoomButton("Fit", "Fit", () => this.fit()),
    );
    this.append(this.#surface, zoom);
    this.#scene.append(this.#lines, this.#outlines, this.#tables, this.#marked);
    this.#surface.append(this.#scene);
    this.#surface.addEventListener("click", (event) => this.#click(event));
    this.#surface.addEventListener("keydown", (event) => this.#key(event));
    this.#surface.addEventListener("focusin", (event) => this.#focused(event));
    this.#surface.addEventListener("pointerover", (event) => this.#mark(indexOf(event.target) ?? this.#chosen));
    new ResizeObserver(() => this.#resized()).observe(this.#surface);
  }

  /** Draws tables, `[{name, kind, columns, keys, links: [{to, columns, toColumns}]}]`; `to` is an index. */
  show(tables) {
    this.#boxes = tables.map(makeBox);
    this.#links = this.#boxes.flatMap((box, from) => box.table.links.map((link) => ({ from, ...link })));
    this.#links = this.#links.slice(0, MOST_LINKS);
    const { places, ...size } = placeBoxes(this.#boxes, this.#links);
    this.#boxes.forEach((box, index) => Object.assign(box, places[index]));
    this.#size = size;
    this.#chosen = null;
    this.#reached = 0;
    this.#fitted = false;
    this.#forget();
    const help = "Arrow keys move it, plus and minus zoom; Tab goes to the tables.";
    this.#surface.setAttribute("aria-label", `Diagram of ${tables.length} tables. ${help}`);
    this.#lines.setAttribute("d", this.#paths(this.#links));
    this.#mark(null);
    this.#resized();
  }

  /** Shows all of it. */
  fit() {
    this.#camera.fit(this.#size);
  }

  /** Highlights a table and its keys, and moves it into view; null highlights none. */
  choose(index) {
    this.#chosen = index;
    this.#mark(index);
    if (index !== null) {
      this.#reach(index);
    }
    this.#draw();
  }

  #paths(links) {
    return links.map((link) => linkPath(this.#boxes[link.from], this.#boxes[link.to], link)).join("");
  }

  #mark(index) {
    const links = index === null ? [] : this.#links.filter(({ from, to }) => from === index || to === index);
    this.#marked.setAttribute("d", this.#paths(links));
  }

  #resized() {
    const { width, height } = this.#surface.getBoundingClientRect();
    if (width === 0 || height === 0 || this.#boxes.length === 0) {
      return;
    }
    if (this.#fitted) {
      this.#draw();
    } else {
      this.#fitted = true;
      this.fit();
    }
  }

  #draw() {
    const { x, y, scale, seen } = this.#camera;
    this.#scene.setAttribute("transform", `translate(${x.toFixed(2)} ${y.toFixed(2)}) scale(${scale.toFixed(5)})`);
    const inSight = this.#boxes.filter((box) => overlaps(box, seen));
    const letters = scale >= READABLE && inSight.length <= MOST_DETAILED ? null : lettersAt(scale);
    const focused = this.#tables.contains(document.activeElement);
    if (letters !== this.#letters) {
      this.#letters = letters;
      this.#forget();
    }
    const crowded = inSight.length > MOST_NAMED;
    this.#outlines.setAttribute("d", crowded ? inSight.map(outlinePath).join("") : "");
    this.#keep(new Set(crowded ? [] : inSight));
    if (focused && !this.#tables.contains(document.activeElement)) {
      this.#drawn.get(this.#boxes[this.#reached])?.focus({ preventScroll: true });
    }
  }

  #forget() {
    clear(this.#tables);
    this.#drawn.clear();
  }

  // Draws these boxes and removes the others. The one that has the Tab stop always exists.
  #keep(wanted) {
    if (this.#boxes.length > 0) {
      wanted.add(this.#boxes[this.#reached]);
    }
    for (const [box, shape] of this.#drawn) {
      if (!wanted.has(box)) {
        shape.remove();
        this.#drawn.delete(box);
      }
    }
    this.#boxes.forEach((box, index) => {
      if (wanted.has(box)) {
        this.#keepOne(box, index);
      }
    });
  }

  #keepOne(box, index) {
    if (!this.#drawn.has(box)) {
      const shape = boxShape(box, index, this.#letters);
      this.#drawn.set(box, shape);
      this.#tables.append(shape);
    }
    const shape = this.#drawn.get(box);
    shape.setAttribute("tabindex", index === this.#reached ? "0" : "-1");
    shape.classList.toggle("chosen", index === this.#chosen);
  }

  // The box with the Tab stop, in view.
  #reach(index) {
    this.#reached = index;
    this.#camera.bring(this.#boxes[index]);
  }

  #focused(event) {
    const index = indexOf(event.target);
    if (index !== null && event.target.matches(":focus-visible")) {
      this.#mark(index);
      this.#reach(index);
    }
  }

  #click(event) {
    if (this.#camera.dragged && event.detail > 0) {
      return;
    }
    const { x, y } = this.#camera.pointAt(event.clientX, event.clientY);
    const under = { left: x, right: x, top: y, bottom: y };
    const index = indexOf(event.target) ?? this.#boxes.findIndex((box) => overlaps(box, under));
    if (index >= 0) {
      this.#pick(index);
    }
  }

  #key(event) {
    const index = indexOf(event.target);
    if (index === null || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    if (event.key === "Enter" || event.key === " ") {
      this.#pick(index);
    } else if (event.key.startsWith("Arrow")) {
      this.#step(index, event.key);
    } else {
      return;
    }
    event.preventDefault();
  }

  #pick(index) {
    this.dispatchEvent(new CustomEvent("choose", { detail: index, bubbles: true }));
  }

  #step(index, key) {
    const next = nearest(this.#boxes, index, key);
    if (next !== null) {
      this.#reach(next);
      this.#draw();
      this.#drawn.get(this.#boxes[next]).focus({ preventScroll: true });
    }
  }
}

customElements.define("schema-diagram", SchemaDiagram);

function zoomButton(label, sign, act) {
  return h("button", { type: "button", "aria-label": label, title: label, on: { click: act } }, sign);
}

function indexOf(target) {
  const shape = target.closest("[data-index]");
  return shape === null ? null : Number(shape.dataset.index);
}

function overlaps({ x, y, width, height }, { left, top, right, bottom }) {
  return x <= right && x + width >= left && y <= bottom && y + height >= top;
}

// About 13 pixels in the window, in a few sizes, so that boxes are not drawn again at each step.
function lettersAt(scale) {
  return LETTERS.find((size) => size * scale >= 13) ?? LETTERS.at(-1);
}

// The nearest box in the direction of the key: distance to the side counts more than distance ahead.
function nearest(boxes, index, key) {
  const sideways = key === "ArrowLeft" || key === "ArrowRight";
  const sign = key === "ArrowRight" || key === "ArrowDown" ? 1 : -1;
  const from = middleOf(boxes[index]);
  let best = null;
  let least = Infinity;
  boxes.forEach((box, at) => {
    const to = middleOf(box);
    const [along, aside] = sideways ? [to.x - from.x, to.y - from.y] : [to.y - from.y, to.x - from.x];
    const distance = along * sign + 2 * Math.abs(aside);
    if (along * sign > 1 && distance < least) {
      [best, least] = [at, distance];
    }
  });
  return best;
}

function middleOf({ x, y, width, height }) {
  return { x: x + width / 2, y: y + height / 2 };
}
