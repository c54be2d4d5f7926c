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
    if (this.image?.width !== width || this.image?.height !== height) {
      this.image = context.createImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    this.pixels.fill(0);
    const ratio = devicePixelRatio || 1;
    const radius = dotRadius(this.n, view.scale, width, ratio);
    if (this.drawnWith?.radius !== radius || this.drawnWith.palette !== palette || this.drawnWith.paper !== paper || this.drawnWith.width !== width) {
      this.drawnWith = { radius, palette, paper, width };
      this.dots = [
        new Dots(palette, paper, radius, width, { alpha: 0.2 }),
        new Dots(palette, paper, radius, width, { alpha: 0.86, rim: radius > 2.2 * ratio ? ratio : 0 }),
        new Dots(palette, paper, Math.max(radius * 1.6, 4 * ratio), width, { alpha: 1, rim: 1.5 * ratio }),
        new Dots(palette, paper, Math.max(radius * 2, 6 * ratio), width, { alpha: 1, rim: 2.5 * ratio }),
      ];
    }
    for (const strength of [FAINT, PLAIN, LIT, CHOSEN]) this.#drawAll(strength, view, width, height);
    context.putImageData(this.image, 0, 0);
  }

  #drawAll(strength, view, width, height) {
    const { n, x, y, colours, strengths, pixels } = this;
    const dots = this.dots[strength];
    const { size } = dots;
    const wide = view.scale * view.stretch;
    const tall = view.scale;
    const [left, top] = [view.left - (size - 1) / 2 + 0.5, view.top - (size - 1) / 2 + 0.5];
    for (let i = 0; i < n; i++) {
      if (strengths[i] !== strength) continue;
      const x0 = Math.floor(x[i] * wide + left);
      const y0 = Math.floor(y[i] * tall + top);
      if (x0 <= -size || y0 <= -size || x0 >= width || y0 >= height) continue;
      if (x0 >= 0 && y0 >= 0 && x0 + size <= width && y0 + size <= height) dots.stamp(pixels, y0 * width + x0, colours[i]);
      else dots.stampPart(pixels, width, height, x0, y0, colours[i]);
    }
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
  const radius = Math.min(5 * ratio, Math.max(1.1 * ratio, roomy, (1.2 * ratio * scale) / Math.max(width, 1) / 2));
  return Math.round(radius * 5) / 5; // in steps, so that discs are seldom made anew
}

// A disc in each colour, as pixels to be written, with a rim of paper that keeps neighbours apart.
class Dots {
  // `width` is that of the image, of which places are numbered row by row.
  constructor(palette, paper, radius, width, { alpha, rim = 0 }) {
    this.size = Math.ceil(radius + rim - 0.5) * 2 + 1;
    const middle = (this.size - 1) / 2;
    const cells = [];
    for (let at = 0; at < this.size ** 2; at++) {
      const [dx, dy] = [at % this.size, Math.floor(at / this.size)];
      const away = Math.hypot(dx - middle, dy - middle);
      const cover = Math.max(0, Math.min(1, radius + rim + 0.5 - away));
      if (cover > 0.04) cells.push({ dx, dy, cover, isRim: rim > 0 && away > radius + 0.5 });
    }
    cells.sort((a, b) => b.cover - a.cover); // those that are covered well come first
    this.cells = cells;
    this.n = cells.length;
    this.solid = cells.filter(({ cover }) => cover >= 0.5).length;
    this.offsets = Int32Array.from(cells, ({ dx, dy }) => dy * width + dx);
    const pixel = ([r, g, b], opacity) => ((Math.max(1, Math.round(255 * opacity)) << 24) | (b << 16) | (g << 8) | r) >>> 0;
    this.values = new Uint32Array(palette.length * this.n);
    palette.forEach((rgb, colour) => cells.forEach(({ cover, isRim }, k) => {
      this.values[colour * this.n + k] = pixel(isRim ? paper : rgb, cover * (isRim ? 0.9 : alpha));
    }));
  }

  // Edges are smooth on paper only: over another point they would need to be mixed.
  stamp(pixels, at, colour) {
    const { n, solid, offsets, values } = this;
    const first = colour * n;
    for (let k = 0; k < solid; k++) pixels[at + offsets[k]] = values[first + k];
    for (let k = solid; k < n; k++) {
      if (pixels[at + offsets[k]] >>> 24 < values[first + k] >>> 24) pixels[at + offsets[k]] = values[first + k];
    }
  }

  // The same at the edge of the image.
  stampPart(pixels, width, height, x0, y0, colour) {
    this.cells.forEach(({ dx, dy }, k) => {
      const [x, y] = [x0 + dx, y0 + dy];
      const value = this.values[colour * this.n + k];
      if (x < 0 || y < 0 || x >= width || y >= height) return;
      if (k < this.solid || pixels[y * width + x] >>> 24 < value >>> 24) pixels[y * width + x] = value;
    });
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
