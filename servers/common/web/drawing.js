// Draws points as SVG: axes with ticks, and bars, a line or dots.

import { svg, visible } from "./dom.js";
import { rangeOf } from "./points.js";
import { linearScale, niceTicks, tickText } from "./scale.js";

const HEIGHT = 300;
const TOP = 12;
const RIGHT = 16;
const BOTTOM = 44;
const LETTER_PX = 6.6;
const LABEL_CUT = 12;
const LABEL_PX = 90;

/** An image of `points`: `kind` is bars, lines or points. `nameOf(point)` labels points in sequence; it is null if
 * they are placed by x. `label` and `detail` describe the image in words. */
export function drawPoints(points, { kind, width, nameOf, xTitle, label, detail }) {
  const ys = niceTicks(...yRange(points, kind), 5);
  const left = Math.max(...ys.map((tick) => tickText(tick).length)) * LETTER_PX + 16;
  const y = linearScale([ys[0], ys.at(-1)], [HEIGHT - BOTTOM, TOP]);
  const right = width - RIGHT;
  const range = xRange(points, nameOf);
  const scale = linearScale(range, [left, right]);
  const placed = points.map((point, at) => ({ point, x: scale(nameOf ? at : point.x), y: y(point.y) }));
  const props = { class: "plot", role: "img", width, height: HEIGHT, "aria-label": `${label}. ${detail}` };
  const labels = nameOf ? namesBelow(placed, nameOf, right - left) : ticksBelow(range, scale, right - left);
  const title = { class: "plot-title", x: (left + right) / 2, y: HEIGHT - 6, "text-anchor": "middle" };
  const thick = Math.max(1, ((right - left) / points.length) * 0.8);
  const draw = { bars: () => drawBars(placed, thick, y(0)), lines: drawCurve, points: drawDots }[kind];
  const name = svg("text", { ...title, text: visible(xTitle, 60) });
  return svg("svg", props, yAxis(ys, y, { left, right }), labels, draw(placed), name);
}

function yRange(points, kind) {
  const [low, high] = rangeOf(points, "y");
  return kind === "bars" ? [Math.min(0, low), Math.max(0, high)] : [low, high];
}

function xRange(points, nameOf) {
  const [low, high] = nameOf ? [-0.5, points.length - 0.5] : rangeOf(points, "x");
  return low === high ? [low - 1, high + 1] : [low, high];
}

function yAxis(ticks, y, { left, right }) {
  return ticks.flatMap((tick) => [
    svg("line", { class: tick === 0 ? "plot-zero" : "plot-line", x1: left, x2: right, y1: y(tick), y2: y(tick) }),
    svg("text", { x: left - 8, y: y(tick) + 4, "text-anchor": "end", text: tickText(tick) }),
  ]);
}

function namesBelow(placed, nameOf, room) {
  const step = Math.ceil(placed.length / labelsIn(room));
  const named = placed.filter((_, at) => at % step === 0);
  return named.map(({ point, x }) => below(x, shortName(nameOf(point))));
}

function ticksBelow([low, high], scale, room) {
  const ticks = niceTicks(low, high, labelsIn(room)).filter((tick) => tick >= low && tick <= high);
  return ticks.map((tick) => below(scale(tick), tickText(tick)));
}

function labelsIn(room) {
  return Math.max(2, Math.floor(room / LABEL_PX));
}

function below(x, text) {
  return svg("text", { x, y: HEIGHT - BOTTOM + 18, "text-anchor": "middle", text });
}

function shortName(name) {
  const shown = visible(name, 100).replaceAll("\n", " ");
  return shown.length > LABEL_CUT ? `${shown.slice(0, LABEL_CUT - 1)}…` : shown;
}

function drawBars(placed, thick, base) {
  const bar = ({ x, y }) => {
    const height = Math.max(0.5, Math.abs(base - y));
    return svg("rect", { x: x - thick / 2, y: Math.min(base, y), width: thick, height });
  };
  return svg("g", { class: "plot-bars" }, placed.map(bar));
}

function drawCurve(placed) {
  return svg("polyline", { class: "plot-curve", points: placed.map(({ x, y }) => `${x},${y}`).join(" ") });
}

// One element for all: each dot is a line of length zero with round ends.
function drawDots(placed) {
  return svg("path", { class: "plot-dots", d: placed.map(({ x, y }) => `M${x} ${y}h0`).join("") });
}
