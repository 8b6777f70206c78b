// The points of a plot: one for each row with numbers, and fewer if there are too many.

// Beyond this, the difference between two numbers may be zero.
const LARGEST = 1e300;

/** The indexes of the columns that contain numbers, and apart from them only null. */
export function numericColumns(columns, rows) {
  const some = rows.slice(0, 1_000);
  const places = columns.map((_, column) => column);
  return places.filter((column) => {
    let numbers = 0;
    for (const row of some) {
      const value = row[column];
      if (typeof value === "number") numbers += 1;
      else if (value !== null && value !== undefined) return false;
    }
    return numbers > 0;
  });
}

/** The points of `rows`: {x, y, row}, where `x` is the number of the row if no column is given or it has texts;
 * `left` is the number of rows without a number. */
export function pointsOf(rows, { x, y, isNumeric }) {
  const points = [];
  rows.forEach((row, number) => {
    const at = isNumeric ? row[x] : number;
    if (isPlain(at) && isPlain(row[y])) points.push({ x: at, y: row[y], row: number });
  });
  return { points, left: rows.length - points.length };
}

function isPlain(value) {
  return typeof value === "number" && Math.abs(value) <= LARGEST;
}

/** About `most` of the `points`: for `kind` "points" at regular intervals, otherwise the lowest and the highest of
 * each interval, so that no peak is lost. Sorted by x. */
export function samplePoints(points, most, kind) {
  const fewer = kind === "points" ? spaced : extremes;
  const kept = points.length <= most ? [...points] : fewer(points, most);
  return kept.sort((one, other) => one.x - other.x || one.row - other.row);
}

function spaced(points, most) {
  const step = Math.ceil(points.length / most);
  return points.filter((_, number) => number % step === 0);
}

function extremes(points, most) {
  const [low, high] = rangeOf(points, "x");
  const stretches = Math.floor(most / 2);
  const found = new Map();
  const scale = stretches / (high - low || 1);
  for (const point of points) {
    const place = Math.min(stretches - 1, Math.floor((point.x - low) * scale));
    const known = found.get(place);
    if (!known) found.set(place, { lowest: point, highest: point });
    else if (point.y < known.lowest.y) known.lowest = point;
    else if (point.y > known.highest.y) known.highest = point;
  }
  return [...new Set([...found.values()].flatMap(({ lowest, highest }) => [lowest, highest]))];
}

/** The minimum and maximum `x` or `y` of at least one point. */
export function rangeOf(points, name) {
  let [low, high] = [Infinity, -Infinity];
  for (const point of points) {
    if (point[name] < low) low = point[name];
    if (point[name] > high) high = point[name];
  }
  return [low, high];
}
