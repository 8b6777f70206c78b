// The visible part of a drawing: pan and zoom of an SVG by pointer, wheel, pinch and keyboard.

const SMALLEST = 0.02;
const LARGEST = 2.5;
const STEP = 1.3;
const NUDGE = 60;
const DRAG = 4;
const MARGIN = 24;

/** The position of a drawing on a surface: a point appears at `x + scale * itsX`, `y + scale * itsY`. */
export class Camera {
  #surface;
  #moved;
  #pointers = new Map();
  #drag = null;

  x = 0;
  y = 0;
  scale = 1;

  /** `surface` is the element that shows the drawing; `moved` is called after each change. */
  constructor(surface, moved) {
    this.#surface = surface;
    this.#moved = moved;
    surface.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    surface.addEventListener("pointerdown", (event) => this.#press(event));
    surface.addEventListener("pointermove", (event) => this.#follow(event));
    surface.addEventListener("pointerup", (event) => this.#release(event));
    surface.addEventListener("pointercancel", (event) => this.#release(event));
    surface.addEventListener("keydown", (event) => this.#key(event));
  }

  /** Returns true if the pointer that is released now has moved the drawing, so that this is not a click. */
  get dragged() {
    return this.#drag?.far === true;
  }

  /** The visible part of the drawing. */
  get seen() {
    const { width, height } = this.#surface.getBoundingClientRect();
    const { x, y, scale } = this;
    return { left: -x / scale, top: -y / scale, right: (width - x) / scale, bottom: (height - y) / scale };
  }

  /** The point of the drawing at a point of the window. */
  pointAt(clientX, clientY) {
    const { left, top } = this.#surface.getBoundingClientRect();
    return { x: (clientX - left - this.x) / this.scale, y: (clientY - top - this.y) / this.scale };
  }

  /** Shows all of a drawing of this size. */
  fit({ width, height }) {
    const frame = this.#surface.getBoundingClientRect();
    const room = { width: frame.width - 2 * MARGIN, height: frame.height - 2 * MARGIN };
    const wanted = Math.min(room.width / Math.max(width, 1), room.height / Math.max(height, 1), 1);
    this.scale = Math.min(Math.max(wanted, SMALLEST), LARGEST);
    this.x = (frame.width - width * this.scale) / 2;
    this.y = (frame.height - height * this.scale) / 2;
    this.#moved();
  }

  /** Zooms around a point of the window, by default its middle. */
  zoom(factor, clientX = null, clientY = null) {
    const { left, top, width, height } = this.#surface.getBoundingClientRect();
    const [atX, atY] = clientX === null ? [width / 2, height / 2] : [clientX - left, clientY - top];
    const scale = Math.min(Math.max(this.scale * factor, SMALLEST), LARGEST);
    const ratio = scale / this.scale;
    this.#put(atX - (atX - this.x) * ratio, atY - (atY - this.y) * ratio, scale);
  }

  /** A step of the zoom buttons. */
  zoomIn() {
    this.zoom(STEP);
  }

  zoomOut() {
    this.zoom(1 / STEP);
  }

  /** Moves a box of the drawing into view, large enough to read. */
  bring({ x, y, width, height }, readable = 0.6) {
    const frame = this.#surface.getBoundingClientRect();
    const scale = Math.max(this.scale, readable);
    const seen = this.seen;
    const whole = x >= seen.left && y >= seen.top && x + width <= seen.right && y + height <= seen.bottom;
    if (!whole || scale !== this.scale) {
      this.#put(frame.width / 2 - (x + width / 2) * scale, frame.height / 2 - (y + height / 2) * scale, scale);
    }
  }

  #put(x, y, scale = this.scale) {
    Object.assign(this, { x, y, scale });
    this.#moved();
  }

  // The wheel also scrolls the page around the frame, so the drawing uses it only while it has the focus.
  #wheel(event) {
    if (event.ctrlKey || event.metaKey || this.#surface.contains(document.activeElement)) {
      event.preventDefault();
      const pixels = event.deltaMode === WheelEvent.DOM_DELTA_PIXEL ? event.deltaY : event.deltaY * 30;
      this.zoom(Math.exp(-Math.min(Math.max(pixels, -200), 200) / 300), event.clientX, event.clientY);
    }
  }

  #press(event) {
    if (event.button !== 0) {
      return;
    }
    this.#pointers.set(event.pointerId, event);
    this.#drag = { x: event.clientX, y: event.clientY, far: this.#pointers.size > 1 };
  }

  #follow(event) {
    const before = this.#pointers.get(event.pointerId);
    if (before === undefined) {
      return;
    }
    if (this.#pointers.size > 1) {
      this.#pinch(before, event);
    } else if (this.dragged || Math.hypot(event.clientX - this.#drag.x, event.clientY - this.#drag.y) > DRAG) {
      // Captured only now, since until here it may be a click on a table.
      this.#surface.setPointerCapture(event.pointerId);
      this.#drag.far = true;
      this.#put(this.x + event.clientX - before.clientX, this.y + event.clientY - before.clientY);
    } else {
      return;
    }
    this.#pointers.set(event.pointerId, event);
  }

  #pinch(before, now) {
    const other = [...this.#pointers.values()].find((pointer) => pointer.pointerId !== now.pointerId);
    const distance = (pointer) => Math.hypot(pointer.clientX - other.clientX, pointer.clientY - other.clientY);
    const [x, y] = [(now.clientX + other.clientX) / 2, (now.clientY + other.clientY) / 2];
    this.#put(this.x + (now.clientX - before.clientX) / 2, this.y + (now.clientY - before.clientY) / 2);
    this.zoom(Math.max(distance(now), 1) / Math.max(distance(before), 1), x, y);
  }

  #release(event) {
    this.#pointers.delete(event.pointerId);
  }

  #key(event) {
    if (event.target !== this.#surface || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const moves = { ArrowLeft: [NUDGE, 0], ArrowRight: [-NUDGE, 0], ArrowUp: [0, NUDGE], ArrowDown: [0, -NUDGE] };
    if (event.key in moves) {
      const [x, y] = moves[event.key];
      this.#put(this.x + x, this.y + y);
    } else if (event.key === "+" || event.key === "=") {
      this.zoomIn();
    } else if (event.key === "-") {
      this.zoomOut();
    } else {
      return;
    }
    event.preventDefault();
  }
}
