// Many points on a canvas: drawn pixel by pixel into one image, looked up through a grid.

const CELLS = 128;

export class Points {
  constructor(x, y, colours) {
    this.n = x.length;
    this.x = Float32Array.from(x, (value) => value / 65535);
    this.y = Float32Array.from(y, (value) => value / 65535);
    this.colours = Uint8Array.from(colours.length ? colours : new Array(this.n).fill(0));
    this.#index();
  }

  // Counting sort of the points into cells.
  #index() {
    const cell = new Uint32Array(this.n);
    const starts = new Uint32Array(CELLS * CELLS + 1);
    for (let i = 0; i < this.n; i++) {
      const column = Math.min(CELLS - 1, Math.floor(this.x[i] * CELLS));
      const row = Math.min(CELLS - 1, Math.floor(this.y[i] * CELLS));
      cell[i] = row * CELLS + column;
      starts[cell[i] + 1]++;
    }
    for (let c = 0; c < CELLS * CELLS; c++) starts[c + 1] += starts[c];
    const next = starts.slice();
    this.order = new Uint32Array(this.n);
    for (let i = 0; i < this.n; i++) this.order[next[cell[i]]++] = i;
    this.starts = starts;
  }

  // The point nearest to (x, y) within `reach`, all in the map's own units; -1 if there is none.
  nearest(x, y, reach) {
    let best = -1;
    let least = reach * reach;
    const cut = (value) => Math.min(CELLS - 1, Math.max(0, Math.floor(value * CELLS)));
    for (let row = cut(y - reach); row <= cut(y + reach); row++) {
      for (let column = cut(x - reach); column <= cut(x + reach); column++) {
        const c = row * CELLS + column;
        for (let at = this.starts[c]; at < this.starts[c + 1]; at++) {
          const i = this.order[at];
          const away = (this.x[i] - x) ** 2 + (this.y[i] - y) ** 2;
          if (away < least) {
            least = away;
            best = i;
          }
        }
      }
    }
    return best;
  }

  // `palette` has [r, g, b] for each colour; `shown` says which colours are drawn strongly.
  draw(context, view, palette, shown, { quick }) {
    const { width, height } = context.canvas;
    const image = context.createImageData(width, height);
    const radius = dotRadius(this.n, view.scale, width);
    const mask = quick ? null : disc(radius);
    for (const strong of [false, true]) {
      for (let i = 0; i < this.n; i++) {
        const colour = this.colours[i];
        if (shown[colour] !== strong) continue;
        const px = this.x[i] * view.scale * view.stretch + view.left;
        const py = this.y[i] * view.scale + view.top;
        if (px < -radius || py < -radius || px > width + radius || py > height + radius) continue;
        const rgb = palette[colour];
        if (quick) square(image, px, py, radius, rgb, strong);
        else stamp(image, px, py, mask, rgb, strong ? 0.8 : 0.08);
      }
    }
    context.putImageData(image, 0, 0);
  }
}

function dotRadius(n, scale, width) {
  const ratio = devicePixelRatio || 1;
  const roomy = Math.min(2 * ratio, Math.sqrt((scale * scale) / Math.max(n, 1)) / 3.5);
  return Math.min(5 * ratio, Math.max(1.1 * ratio, roomy, (1.2 * ratio * scale) / Math.max(width, 1) / 2));
}

function disc(radius) {
  const size = Math.ceil(radius) * 2 + 1;
  const middle = (size - 1) / 2;
  const cover = new Float32Array(size * size);
  for (let y = 0; y < size; y++) {
    for (let x = 0; x < size; x++) {
      const away = Math.hypot(x - middle, y - middle);
      cover[y * size + x] = Math.max(0, Math.min(1, radius + 0.5 - away));
    }
  }
  return { size, cover };
}

function stamp(image, px, py, { size, cover }, [r, g, b], strength) {
  const { width, height, data } = image;
  const left = Math.round(px - (size - 1) / 2);
  const top = Math.round(py - (size - 1) / 2);
  for (let dy = 0; dy < size; dy++) {
    const y = top + dy;
    if (y < 0 || y >= height) continue;
    for (let dx = 0; dx < size; dx++) {
      const x = left + dx;
      if (x < 0 || x >= width) continue;
      const alpha = cover[dy * size + dx] * strength;
      if (alpha === 0) continue;
      const at = (y * width + x) * 4;
      const before = data[at + 3] / 255;
      const after = alpha + before * (1 - alpha);
      const keep = (before * (1 - alpha)) / after;
      data[at] = r * (1 - keep) + data[at] * keep;
      data[at + 1] = g * (1 - keep) + data[at + 1] * keep;
      data[at + 2] = b * (1 - keep) + data[at + 2] * keep;
      data[at + 3] = after * 255;
    }
  }
}

function square(image, px, py, radius, [r, g, b], strong) {
  const { width, height, data } = image;
  const left = Math.max(0, Math.round(px - radius));
  const top = Math.max(0, Math.round(py - radius));
  const right = Math.min(width, left + Math.round(2 * radius));
  const bottom = Math.min(height, top + Math.round(2 * radius));
  const alpha = strong ? 210 : 24;
  for (let y = top; y < bottom; y++) {
    for (let x = left; x < right; x++) {
      const at = (y * width + x) * 4;
      data[at] = r;
      data[at + 1] = g;
      data[at + 2] = b;
      data[at + 3] = Math.max(alpha, data[at + 3]);
    }
  }
}
