// A table as a box of the diagram, and a foreign key as a line between two boxes.

import { svg, visible } from "../../web/dom.js";

const BOX_WIDTH = 230;
const HEAD_HEIGHT = 32;
const LINE_HEIGHT = 20;
const BOX_EDGE = 10;
const MOST_LINES = 10;
const NAME_AT = 34;
const LETTER_WIDTH = 7.6;
const LONGEST_TYPE = 10;
const LEAST_BEND = 30;

/** The box of a table, `{name, kind, columns, keys, links}`: its size, and as many columns as fit. */
export function makeBox(table) {
  const keyed = (column) => column.primary_key || table.keys.has(column.name);
  const first = [...table.columns.filter(keyed), ...table.columns.filter((column) => !keyed(column))];
  const lines = first.slice(0, MOST_LINES);
  const more = table.columns.length - lines.length;
  const body = (lines.length + (more > 0 ? 1 : 0)) * LINE_HEIGHT;
  const height = HEAD_HEIGHT + (body > 0 ? body + BOX_EDGE : 0);
  return { table, lines, more, width: BOX_WIDTH, height, x: 0, y: 0 };
}

/** Draws a box with its columns, or with only its name in the font size `letters`. */
export function boxShape(box, index, letters) {
  const { table, x, y, width, height } = box;
  // Its accessible name is the visible one, so that users can choose it by speech.
  const props = { role: "button", tabindex: "-1", "aria-description": table.kind, "data-index": index };
  const place = { class: `table ${table.kind === "view" ? "view" : ""}`, transform: `translate(${x} ${y})` };
  const frame = svg("rect", { class: "frame", width, height, rx: 6 });
  if (letters !== null) {
    const name = fitText(table.name, width - 2 * BOX_EDGE, (LETTER_WIDTH * letters) / 13);
    const middle = { x: width / 2, y: height / 2, "font-size": letters, class: "name far" };
    return svg("g", { ...place, ...props }, frame, svg("text", middle, name));
  }
  const lines = box.lines.flatMap((column, at) => lineShapes(box, column, at));
  return svg("g", { ...place, ...props }, frame, ...headShapes(box), ...lines);
}

function headShapes({ table, more, lines, width }) {
  const name = fitText(table.name, width - 2 * BOX_EDGE, LETTER_WIDTH);
  const shapes = [svg("text", { x: BOX_EDGE, y: 21, class: "name" }, name)];
  if (lines.length > 0) {
    shapes.push(svg("path", { class: "rule", d: `M0 ${HEAD_HEIGHT}h${width}` }));
  }
  if (more > 0) {
    const y = lineMiddle(lines.length) + 4;
    shapes.push(svg("text", { x: NAME_AT, y, class: "more" }, `and ${more.toLocaleString("en-US")} more`));
  }
  return shapes;
}

function lineShapes({ table, width }, column, at) {
  const y = lineMiddle(at) + 4;
  const type = fitText(column.type ?? "", LONGEST_TYPE * LETTER_WIDTH, LETTER_WIDTH);
  const room = width - NAME_AT - BOX_EDGE - (type.length + 1) * LETTER_WIDTH;
  const name = fitText(column.name, room, LETTER_WIDTH);
  const mark = column.primary_key ? "PK" : table.keys.has(column.name) ? "FK" : null;
  return [
    mark === null ? null : svg("text", { x: BOX_EDGE, y, class: "key" }, mark),
    svg("text", { x: NAME_AT, y, class: column.primary_key ? "column primary" : "column" }, name),
    svg("text", { x: width - BOX_EDGE, y, class: "type" }, type),
  ];
}

/** The path data of the line for a foreign key, from box to box, with an arrow at the referenced table. */
export function linkPath(from, to, { columns, toColumns }) {
  const startY = port(from, columns[0]);
  const endY = port(to, toColumns[0]);
  const leftwards = to.x + to.width <= from.x;
  const rightwards = from.x + from.width <= to.x;
  const startX = leftwards ? from.x : from.x + from.width;
  const endX = rightwards ? to.x : to.x + to.width;
  const [out, back] = [leftwards ? -1 : 1, rightwards ? -1 : 1];
  const bend = Math.max(LEAST_BEND, Math.abs(endX - startX) / 2);
  const curve = `M${startX} ${startY}C${startX + out * bend} ${startY} ${endX + back * bend} ${endY} ${endX} ${endY}`;
  return `${curve}M${endX + back * 9} ${endY - 5}L${endX} ${endY}L${endX + back * 9} ${endY + 5}`;
}

function port(box, name) {
  const at = box.lines.findIndex((column) => column.name === name);
  return box.y + (at < 0 ? HEAD_HEIGHT / 2 : lineMiddle(at));
}

function lineMiddle(at) {
  return HEAD_HEIGHT + BOX_EDGE / 2 + (at + 0.5) * LINE_HEIGHT;
}

/** The path data of a box's outline. */
export function outlinePath({ x, y, width, height }) {
  return `M${x} ${y}h${width}v${height}h${-width}z`;
}

// Cut to the available width; East Asian characters are twice as wide.
function fitText(text, room, letter) {
  const characters = Array.from(visible(text.slice(0, 200)));
  let width = 0;
  for (let at = 0; at < characters.length; at += 1) {
    width += characters[at].codePointAt(0) >= 0x2e80 ? 2 * letter : letter;
    if (width > room) {
      return `${characters.slice(0, Math.max(at - 1, 0)).join("")}…`;
    }
  }
  return characters.join("");
}
