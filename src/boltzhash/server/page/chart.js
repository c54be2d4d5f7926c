// The map as it is looked at: dragged, zoomed, pointed at.

const REACH = 14; // pixels around the pointer in which a point is hit
const FAR_REACH = 200; // from the middle of the map, for who has no pointer
const MOST_STRETCHED = 1.7;
const FILLED = 0.92; // of the frame: names need some room at its edges
const COARSE = 6; // pixels of the page for one of the glow
const STILL = 6; // pixels that a click may move
const SETTLED = 140; // milliseconds without moving

export class Chart {
  // `layers` are the frame, the canvases and the tip; `on` what is called.
  constructor({ frame, glow, dots }, points, labels, on) {
    Object.assign(this, { frame, canvas: dots, glow, points, labels, on });
    this.context = dots.getContext("2d");
    this.glowContext = glow.getContext("2d");
    this.palette = [[0, 0, 0]];
    this.view = { scale: 1, stretch: 1, left: 0, top: 0 };
    this.pointers = new Map();
    this.drawing = null;
    this.settling = null;
  }

  // `place` is where one has looked before, as `whereabouts` tells it.
  begin(place) {
    this.wanted = place;
    const watching = new ResizeObserver(() => {
      if (!this.canvas.isConnected) return watching.disconnect();
      this.#resize();
      return undefined;
    });
    watching.observe(this.canvas);
    const listen = (name, handler, options) => this.frame.addEventListener(name, handler, options);
    listen("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY / 400), this.#at(event));
    }, { passive: false });
    listen("pointerdown", (event) => this.#down(event));
    listen("pointermove", (event) => this.#move(event));
    listen("pointerup", (event) => this.#up(event));
    listen("pointercancel", (event) => this.pointers.delete(event.pointerId));
    listen("pointerleave", () => this.on.hover(-1));
    listen("click", (event) => {
      if (event.detail > 0 && this.travelled >= STILL) event.stopPropagation(); // the end of a drag chooses no label
    }, { capture: true });
    this.canvas.addEventListener("keydown", (event) => this.#key(event));
  }

  #resize() {
    const ratio = devicePixelRatio || 1;
    const { width, height } = this.canvas.getBoundingClientRect();
    if (width === 0) return;
    this.ratio = ratio;
    const before = this.wanted ?? (this.fitted ? this.whereabouts() : "");
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.glow.width = Math.ceil(width / COARSE);
    this.glow.height = Math.ceil(height / COARSE);
    this.wanted = null;
    this.look(before);
  }

  #fit() {
    const { width, height } = this.canvas;
    const [room, tall] = [width * FILLED, height * FILLED];
    const scale = Math.min(tall, room * MOST_STRETCHED);
    const stretch = Math.min(MOST_STRETCHED, room / scale); // the axes mean nothing: fill the frame
    this.fitted = scale;
    this.view = { scale, stretch, left: (width - scale * stretch) / 2, top: (height - scale) / 2 };
  }

  // The middle of the window and how far one has zoomed in; nothing if all is in view.
  whereabouts() {
    const { scale, stretch, left, top } = this.view;
    const zoomed = scale / this.fitted;
    const x = (this.canvas.width / 2 - left) / (scale * stretch);
    const y = (this.canvas.height / 2 - top) / scale;
    if (Math.abs(zoomed - 1) < 1e-3 && Math.hypot(x - 0.5, y - 0.5) < 1e-3) return "";
    return [x.toFixed(5), y.toFixed(5), zoomed.toFixed(4)].join(",");
  }

  look(place) {
    this.#fit();
    const [x, y, zoomed] = place.split(",").map(Number);
    if (place && [x, y, zoomed].every(Number.isFinite)) {
      const scale = this.#limited(this.fitted * zoomed);
      const { stretch } = this.view;
      this.view = {
        scale, stretch,
        left: this.canvas.width / 2 - x * scale * stretch,
        top: this.canvas.height / 2 - y * scale,
      };
    }
    this.draw();
  }

  // All points of a region, with some air around them.
  lookAt({ x, y, spread }) {
    this.look([x / 65535, y / 65535, Math.max(1, 0.16 / Math.max(spread, 1e-4))].join(","));
    this.#settle();
  }

  reset() {
    this.look("");
    this.#settle();
  }

  #limited(scale) {
    const least = Math.min(this.canvas.width, this.canvas.height) * 0.5;
    return Math.min(Math.max(scale, least), least * 400);
  }

  zoom(factor, around = { x: this.canvas.width / 2, y: this.canvas.height / 2 }) {
    const scale = this.#limited(this.view.scale * factor);
    const ratio = scale / this.view.scale;
    this.view = {
      scale,
      stretch: this.view.stretch,
      left: around.x - (around.x - this.view.left) * ratio,
      top: around.y - (around.y - this.view.top) * ratio,
    };
    this.draw();
    this.#settle();
  }

  pan(dx, dy) {
    this.view.left += dx;
    this.view.top += dy;
    this.draw();
    this.#settle();
  }

  // A point that is out of sight is brought into it.
  reveal(point) {
    const { x, y } = this.where(point);
    const { clientWidth, clientHeight } = this.canvas;
    if (x > 20 && y > 20 && x < clientWidth - 20 && y < clientHeight - 20) return;
    this.pan((clientWidth / 2 - x) * this.ratio, (clientHeight / 2 - y) * this.ratio);
  }

  // Where a point is, in pixels of the page from the corner of the map.
  where(point) {
    const { scale, stretch, left, top } = this.view;
    return {
      x: (this.points.x[point] * scale * stretch + left) / this.ratio,
      y: (this.points.y[point] * scale + top) / this.ratio,
    };
  }

  #settle() {
    clearTimeout(this.settling);
    this.settling = setTimeout(() => {
      if (this.canvas.isConnected) this.on.settle(this.whereabouts());
    }, SETTLED);
  }

  draw() {
    cancelAnimationFrame(this.drawing);
    this.drawing = requestAnimationFrame(() => {
      if (this.fitted && this.canvas.isConnected) this.paint();
    });
  }

  paint() {
    const { view, ratio } = this;
    this.points.glow(this.glowContext, view, this.palette, COARSE * ratio, this.glowing);
    this.points.draw(this.context, view, this.palette, this.paper);
    const inPage = { scale: view.scale / ratio, stretch: view.stretch, left: view.left / ratio, top: view.top / ratio };
    this.labels.place(inPage, view.scale / this.fitted, this.canvas.clientWidth, this.canvas.clientHeight, this.on.taken());
  }

  #at(event) {
    const box = this.canvas.getBoundingClientRect();
    const ratio = this.canvas.width / box.width;
    return { x: (event.clientX - box.left) * ratio, y: (event.clientY - box.top) * ratio };
  }

  under({ x, y }, reach = REACH) {
    return this.points.nearest(this.view, x, y, reach * this.ratio);
  }

  #down(event) {
    this.pointers.set(event.pointerId, this.#at(event));
    this.travelled = 0;
  }

  #move(event) {
    const at = this.#at(event);
    const before = this.pointers.get(event.pointerId);
    if (before === undefined) {
      this.on.hover(event.target === this.canvas ? this.under(at) : -1);
      return;
    }
    this.travelled += Math.hypot(at.x - before.x, at.y - before.y);
    if (this.travelled >= STILL) this.frame.setPointerCapture(event.pointerId);
    const others = [...this.pointers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
    this.pointers.set(event.pointerId, at);
    if (others.length === 0) this.pan(at.x - before.x, at.y - before.y);
    else {
      const spread = (place) => Math.hypot(place.x - others[0].x, place.y - others[0].y);
      const middle = { x: (at.x + others[0].x) / 2, y: (at.y + others[0].y) / 2 };
      if (spread(before) > 0) this.zoom(spread(at) / spread(before), middle);
    }
    this.on.hover(-1);
  }

  #up(event) {
    const alone = this.pointers.size === 1;
    this.pointers.delete(event.pointerId);
    if (!alone || this.travelled >= STILL || event.target !== this.canvas) return;
    this.on.choose(this.under(this.#at(event)));
  }

  #key(event) {
    const step = 60 * (devicePixelRatio || 1);
    const moves = { ArrowLeft: [step, 0], ArrowRight: [-step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };
    if (event.key in moves) this.pan(...moves[event.key]);
    else if (event.key === "+" || event.key === "=") this.zoom(1.4);
    else if (event.key === "-") this.zoom(1 / 1.4);
    else if (event.key === "0") this.reset();
    else if (event.key === "Enter") this.on.choose(this.under({ x: this.canvas.width / 2, y: this.canvas.height / 2 }, FAR_REACH));
    else return;
    event.preventDefault();
  }
}
