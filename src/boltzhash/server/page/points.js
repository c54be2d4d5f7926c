// Many points on a canvas: drawn pixel by pixel into one image, looked up through a grid, their density as a glow.

const CELLS = 128;
const FAINT = 0; // what the strength of a point may be
const PLAIN = 1;
const LIT = 2;
const CHOSEN = 3;
export const STRENGTHS = { FAINT, PLAIN, LIT, CHOSEN };

export class Points {
  constructor(x, y) {
    this.n = x.length;
    this.x = Float32Array.from(x, (value) => value / 65535);
    this.y = Float32Array.from(y, (value) => value / 65535);
    this.colours = new Uint16Array(this.n);
    this.strengths = new Uint8Array(this.n).fill(PLAIN);
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

  // The point nearest to a pixel within `reach` pixels, as the screen shows it; -1 if there is none.
  // Points that are faint are passed over.
  nearest({ scale, stretch, left, top }, px, py, reach) {
    const [wide, tall] = [scale * stretch, scale];
    const cut = (value) => Math.min(CELLS - 1, Math.max(0, Math.floor(value * CELLS)));
    let best = -1;
    let least = reach * reach;
    for (let row = cut((py - reach - top) / tall); row <= cut((py + reach - top) / tall); row++) {
      for (let column = cut((px - reach - left) / wide); column <= cut((px + reach - left) / wide); column++) {
        const c = row * CELLS + column;
        for (let at = this.starts[c]; at < this.starts[c + 1]; at++) {
          const i = this.order[at];
          if (this.strengths[i] === FAINT) continue;
          const away = (this.x[i] * wide + left - px) ** 2 + (this.y[i] * tall + top - py) ** 2;
          if (away < least) {
            least = away;
            best = i;
          }
        }
      }
    }
    return best;
  }

  // `palette` has [r, g, b] for each colour, `paper` is what lies under the points.
  draw(context, view, palette, paper) {
    const { width, height } = context.canvas;
    if (this.image?.width !== width || this.image?.height !== height) this.image = context.createImageData(width, height);
    const pixels = new Uint32Array(this.image.data.buffer);
    pixels.fill(0);
    const ratio = devicePixelRatio || 1;
    const radius = dotRadius(this.n, view.scale, width, ratio);
    const sprites = [
      dots(palette, paper, radius, { alpha: 0.2 }),
      dots(palette, paper, radius, { alpha: 0.86, rim: radius > 2.2 * ratio ? ratio : 0 }),
      dots(palette, paper, Math.max(radius * 1.6, 4 * ratio), { alpha: 1, rim: 1.5 * ratio }),
      dots(palette, paper, Math.max(radius * 2, 6 * ratio), { alpha: 1, rim: 2.5 * ratio }),
    ];
    const wide = view.scale * view.stretch;
    const tall = view.scale;
    for (const strength of [FAINT, PLAIN, LIT, CHOSEN]) {
      const { size, solid, ofColour } = sprites[strength];
      const half = (size - 1) / 2;
      for (let i = 0; i < this.n; i++) {
        if (this.strengths[i] !== strength) continue;
        const x0 = Math.round(this.x[i] * wide + view.left - half);
        const y0 = Math.round(this.y[i] * tall + view.top - half);
        if (x0 <= -size || y0 <= -size || x0 >= width || y0 >= height) continue;
        stamp(pixels, width, height, x0, y0, size, solid, ofColour[this.colours[i]]);
      }
    }
    context.putImageData(this.image, 0, 0);
  }

  // How dense the points lie, in their colours, on a canvas of few pixels that is shown enlarged.
  glow(context, view, palette, coarse, alpha) {
    const { width, height } = context.canvas;
    const sums = [0, 1, 2, 3].map(() => new Float32Array(width * height));
    const wide = (view.scale * view.stretch) / coarse;
    const tall = view.scale / coarse;
    const [left, top] = [view.left / coarse, view.top / coarse];
    for (let i = 0; i < this.n; i++) {
      if (this.strengths[i] === FAINT) continue;
      const x = Math.floor(this.x[i] * wide + left);
      const y = Math.floor(this.y[i] * tall + top);
      if (x < 0 || y < 0 || x >= width || y >= height) continue;
      const at = y * width + x;
      const rgb = palette[this.colours[i]];
      sums[3][at]++;
      for (let c = 0; c < 3; c++) sums[c][at] += rgb[c];
    }
    for (const sum of sums) for (let pass = 0; pass < 3; pass++) blur(sum, width, height, 2);
    const image = context.createImageData(width, height);
    const usual = Math.max(0.25, mean(sums[3]));
    for (let at = 0; at < width * height; at++) {
      const density = sums[3][at];
      if (density < 1e-3) continue;
      for (let c = 0; c < 3; c++) image.data[at * 4 + c] = sums[c][at] / density;
      image.data[at * 4 + 3] = 255 * alpha * (1 - Math.exp(-density / usual / 2));
    }
    context.putImageData(image, 0, 0);
  }
}

function mean(values) {
  let sum = 0;
  let n = 0;
  for (const value of values) {
    if (value > 1e-3) {
      sum += value;
      n++;
    }
  }
  return n ? sum / n : 0;
}

function dotRadius(n, scale, width, ratio) {
  const roomy = Math.min(2 * ratio, Math.sqrt((scale * scale) / Math.max(n, 1)) / 4);
  return Math.min(5 * ratio, Math.max(1.1 * ratio, roomy, (1.2 * ratio * scale) / Math.max(width, 1) / 2));
}

// For each colour a disc, as pixels to be written, with a rim of paper that keeps neighbours apart.
function dots(palette, paper, radius, { alpha, rim = 0 }) {
  const size = Math.ceil(radius + rim) * 2 + 1;
  const middle = (size - 1) / 2;
  const solid = new Uint8Array(size * size);
  const covers = new Float32Array(size * size);
  const rims = new Uint8Array(size * size);
  for (let at = 0; at < size * size; at++) {
    const away = Math.hypot((at % size) - middle, Math.floor(at / size) - middle);
    rims[at] = rim > 0 && away > radius + 0.5 ? 1 : 0;
    covers[at] = Math.max(0, Math.min(1, radius + rim + 0.5 - away));
    solid[at] = covers[at] >= 0.5 ? 1 : 0;
  }
  const ofColour = palette.map((rgb) => Uint32Array.from(covers, (cover, at) => {
    const [r, g, b] = rims[at] ? paper : rgb;
    const a = Math.round(255 * cover * (rims[at] ? 0.9 : alpha));
    return a === 0 ? 0 : ((a << 24) | (b << 16) | (g << 8) | r) >>> 0;
  }));
  return { size, solid, ofColour };
}

function stamp(pixels, width, height, x0, y0, size, solid, sprite) {
  const bottom = Math.min(size, height - y0);
  const right = Math.min(size, width - x0);
  for (let dy = Math.max(0, -y0); dy < bottom; dy++) {
    const row = (y0 + dy) * width + x0;
    for (let dx = Math.max(0, -x0); dx < right; dx++) {
      const k = dy * size + dx;
      const value = sprite[k];
      // Edges are smooth on paper only: over another point they would need to be mixed.
      if (value !== 0 && (solid[k] || (pixels[row + dx] >>> 24) < (value >>> 24))) pixels[row + dx] = value;
    }
  }
}

// The mean of `reach` neighbours on either side, along rows and then along columns.
function blur(values, width, height, reach) {
  const line = new Float32Array(Math.max(width, height));
  const along = (start, step, n) => {
    for (let i = 0; i < n; i++) line[i] = values[start + i * step];
    let sum = 0;
    for (let i = 0; i < Math.min(reach, n); i++) sum += line[i];
    for (let i = 0; i < n; i++) {
      if (i + reach < n) sum += line[i + reach];
      if (i - reach - 1 >= 0) sum -= line[i - reach - 1];
      values[start + i * step] = sum / (2 * reach + 1);
    }
  };
  for (let y = 0; y < height; y++) along(y * width, 1, width);
  for (let x = 0; x < width; x++) along(x, width, height);
}
