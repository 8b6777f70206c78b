// The appearance of a view in its host: theme, style variables, dimensions.
//
// Everything is set as CSS custom properties and `data-` attributes of the root element, which theme.css and the
// pages' own styles use. A host's fonts (`styles.css.fonts`) are not used: they are whole style sheets.

const NAME_OF_VARIABLE = /^--[a-z0-9-]{1,100}$/;
const HARMFUL_IN_VALUE = /url\s*\(|image(-set)?\s*\(|src\s*\(|[;{}<>@\\]|\/\*/i;
const LONGEST_VALUE = 500;
const MOST_VARIABLES = 500;
const LARGEST_INSET = 200;
const DISPLAY_MODES = ["inline", "fullscreen", "pip"];

/** Shows the page as the host requests: theme, style variables, dimensions and display mode. */
export function applyContext(context) {
  const root = document.documentElement;
  if (context.theme === "light" || context.theme === "dark") {
    root.dataset.theme = context.theme;
    root.style.colorScheme = context.theme;
  }
  for (const [name, value] of Object.entries(context.styles?.variables ?? {}).slice(0, MOST_VARIABLES)) {
    setVariable(root, name, value);
  }
  if (DISPLAY_MODES.includes(context.displayMode)) {
    root.dataset.display = context.displayMode;
  }
  applyDimensions(root, context.containerDimensions);
  applyInsets(root, context.safeAreaInsets);
}

function setVariable(root, name, value) {
  if (!NAME_OF_VARIABLE.test(name)) {
    return;
  }
  if (typeof value === "string" && value.length <= LONGEST_VALUE && !HARMFUL_IN_VALUE.test(value)) {
    root.style.setProperty(name, value);
  } else {
    root.style.removeProperty(name);
  }
}

// `data-height` is "fixed" if the page must fill the frame; `--host-height` is the height, or maximum height, of it.
function applyDimensions(root, dimensions) {
  const fixed = Number.isFinite(dimensions?.height);
  const height = fixed ? dimensions.height : dimensions?.maxHeight;
  root.dataset.height = fixed ? "fixed" : "flexible";
  if (Number.isFinite(height) && height > 0) {
    root.style.setProperty("--host-height", `${height}px`);
  } else {
    root.style.removeProperty("--host-height");
  }
}

function applyInsets(root, insets) {
  const sides = [insets?.top, insets?.right, insets?.bottom, insets?.left];
  const pixels = sides.map((side) => (Number.isFinite(side) ? Math.min(Math.max(side, 0), LARGEST_INSET) : 0));
  root.style.padding = pixels.some((side) => side > 0) ? pixels.map((side) => `${side}px`).join(" ") : "";
}
