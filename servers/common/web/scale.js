// Numbers on an axis: round ticks, and the positions of numbers.

const STEPS = [1, 2, 5, 10];

/** About `wanted` round numbers that span the range from `low` to `high`. */
export function niceTicks(low, high, wanted) {
  const [from, to] = low === high ? around(low) : [low, high];
  const raw = (to - from) / wanted;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * STEPS.find((one) => one * power >= raw * 0.999);
  const first = Math.floor(from / step + 1e-9);
  const last = Math.ceil(to / step - 1e-9);
  // By multiplication, rounded to the digits of the step: sums of 0.1 are not round.
  const digits = Math.max(0, Math.min(100, -Math.floor(Math.log10(step))));
  return Array.from({ length: last - first + 1 }, (_, at) => Number(((first + at) * step).toFixed(digits)));
}

function around(number) {
  const room = number === 0 ? 1 : Math.abs(number) / 2;
  return [number - room, number + room];
}

/** Returns a function that maps the range `from` to the range `to`. */
export function linearScale([low, high], [start, end]) {
  return (number) => start + ((number - low) / (high - low)) * (end - start);
}

/** The text of a tick. */
export function tickText(number) {
  const size = Math.abs(number);
  if (size !== 0 && (size >= 1e15 || size < 1e-4)) return number.toExponential(2).replace(/\.?0+e\+?/, "e");
  const notation = size >= 1e6 ? "compact" : "standard";
  // A year has no thousands separator.
  return number.toLocaleString("en-US", { notation, maximumFractionDigits: 6, useGrouping: "min2" });
}
