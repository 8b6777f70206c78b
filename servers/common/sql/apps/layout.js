// The positions of the tables of a diagram: in columns from left to right, each table right of those it refers to.
//
// The same tables always give the same drawing. Tables connected by keys form a group; groups and single tables are
// packed into rows. Cycles are broken so that the fewest keys point backwards.

const COLUMN_GAP = 80;
const ROW_GAP = 24;
const GROUP_GAP = 56;
const SWEEPS = 4;
const SHORTEST_COLUMN = 900;
const NARROWEST_ROW = 3000;

/**
 * Places boxes, `[{width, height}]`, with links between them, `[{from, to}]` by index. Returns
 * `{places: [{x, y}], width, height}`.
 */
export function placeBoxes(boxes, links) {
  const neighbors = findNeighbors(boxes.length, links);
  const groups = findGroups(neighbors).map((members) => placeGroup(members, boxes, neighbors));
  return packGroups(groups, boxes.length);
}

function findNeighbors(count, links) {
  const neighbors = Array.from({ length: count }, () => ({ left: new Set(), right: new Set() }));
  for (const { from, to } of links) {
    if (from !== to) {
      neighbors[from].left.add(to);
      neighbors[to].right.add(from);
    }
  }
  return neighbors;
}

function findGroups(neighbors) {
  const seen = new Set();
  const groups = [];
  for (let first = 0; first < neighbors.length; first += 1) {
    const group = [];
    const open = [first];
    while (open.length > 0) {
      const index = open.pop();
      if (!seen.has(index)) {
        seen.add(index);
        group.push(index);
        open.push(...neighbors[index].left, ...neighbors[index].right);
      }
    }
    if (group.length > 0) {
      groups.push(group.sort((one, other) => one - other));
    }
  }
  return groups;
}

// The positions of a group's members, relative to its corner.
function placeGroup(members, boxes, neighbors) {
  const layers = orderLayers(findLayers(members, neighbors), neighbors);
  const area = members.reduce((sum, index) => sum + boxes[index].width * (boxes[index].height + ROW_GAP), 0);
  const longest = Math.max(SHORTEST_COLUMN, Math.sqrt(area));
  const columns = layers.flatMap((layer) => splitLayer(layer, boxes, longest));
  const rows = splitColumns(columns, boxes, Math.max(NARROWEST_ROW, 2 * Math.sqrt(area)));
  const size = { width: 0, height: -ROW_GAP };
  const places = new Map();
  for (const row of rows) {
    const height = Math.max(...row.map((column) => columnHeight(column, boxes)));
    let x = 0;
    for (const column of row) {
      let y = size.height + ROW_GAP + (height - columnHeight(column, boxes)) / 2;
      for (const index of column) {
        places.set(index, { x, y });
        y += boxes[index].height + ROW_GAP;
      }
      x += columnWidth(column, boxes) + COLUMN_GAP;
    }
    size.width = Math.max(size.width, x - COLUMN_GAP);
    size.height += ROW_GAP + height;
  }
  return { places, ...size };
}

// A member's layer is one more than the highest layer of those that it refers to.
function findLayers(members, neighbors) {
  const layerOf = new Map(members.map((index) => [index, 0]));
  const open = new Map(members.map((index) => [index, neighbors[index].left.size]));
  const ready = members.filter((index) => open.get(index) === 0);
  let next = 0;
  while (open.size > 0) {
    const index = next < ready.length ? ready[next] : fewest(open);
    next += next < ready.length ? 1 : 0;
    if (!open.delete(index)) {
      continue;
    }
    for (const child of neighbors[index].right) {
      if (open.has(child)) {
        layerOf.set(child, Math.max(layerOf.get(child), layerOf.get(index) + 1));
        open.set(child, open.get(child) - 1);
        if (open.get(child) === 0) {
          ready.push(child);
        }
      }
    }
  }
  const layers = [];
  for (const index of members) {
    (layers[layerOf.get(index)] ??= []).push(index);
  }
  return layers.filter((layer) => layer !== undefined);
}

function fewest(open) {
  let best = null;
  for (const [index, count] of open) {
    if (best === null || count < open.get(best)) {
      best = index;
    }
  }
  return best;
}

// Members are placed near the middle of their neighbors, so that fewer links cross.
function orderLayers(layers, neighbors) {
  const height = new Map();
  const note = (layer) => layer.forEach((index, at) => height.set(index, (at + 0.5) / layer.length));
  layers.forEach(note);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const rightwards = sweep % 2 === 0;
    for (const layer of rightwards ? layers : [...layers].reverse()) {
      const wanted = new Map(layer.map((index) => [index, middle(index, neighbors, height, rightwards)]));
      layer.sort((one, other) => wanted.get(one) - wanted.get(other) || one - other);
      note(layer);
    }
  }
  return layers;
}

function middle(index, neighbors, height, rightwards) {
  const near = rightwards ? neighbors[index].left : neighbors[index].right;
  if (near.size === 0) {
    return height.get(index);
  }
  let sum = 0;
  for (const one of near) {
    sum += height.get(one);
  }
  return sum / near.size;
}

function splitLayer(layer, boxes, longest) {
  const columns = [[]];
  let height = 0;
  for (const index of layer) {
    if (height > 0 && height + boxes[index].height > longest) {
      columns.push([]);
      height = 0;
    }
    columns.at(-1).push(index);
    height += boxes[index].height + ROW_GAP;
  }
  return columns;
}

// A long chain continues in the next row.
function splitColumns(columns, boxes, widest) {
  const rows = [[]];
  let width = 0;
  for (const column of columns) {
    if (width > 0 && width + columnWidth(column, boxes) > widest) {
      rows.push([]);
      width = 0;
    }
    rows.at(-1).push(column);
    width += columnWidth(column, boxes) + COLUMN_GAP;
  }
  return rows;
}

function columnWidth(column, boxes) {
  return Math.max(...column.map((index) => boxes[index].width));
}

function columnHeight(column, boxes) {
  return column.reduce((sum, index) => sum + boxes[index].height + ROW_GAP, -ROW_GAP);
}

// Rows of groups, the largest group first.
function packGroups(groups, count) {
  const area = groups.reduce((sum, group) => sum + (group.width + GROUP_GAP) * (group.height + GROUP_GAP), 0);
  const widest = Math.max(Math.sqrt(area) * 1.4, ...groups.map((group) => group.width));
  const sorted = [...groups].sort((one, other) => other.places.size - one.places.size || other.height - one.height);
  const places = new Array(count);
  const row = { x: 0, y: 0, height: 0 };
  let width = 0;
  for (const group of sorted) {
    if (row.x > 0 && row.x + group.width > widest) {
      Object.assign(row, { x: 0, y: row.y + row.height + GROUP_GAP, height: 0 });
    }
    for (const [index, { x, y }] of group.places) {
      places[index] = { x: row.x + x, y: row.y + y };
    }
    width = Math.max(width, row.x + group.width);
    row.x += group.width + GROUP_GAP;
    row.height = Math.max(row.height, group.height);
  }
  return { places, width, height: row.y + row.height };
}
