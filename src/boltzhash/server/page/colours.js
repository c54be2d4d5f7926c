// Colours of points: of the values of a field, or of the regions they lie in.

const CATEGORIES = ["#3f6fd8", "#e0793a", "#2f9e68", "#c2468f", "#8a63d2", "#b8932b", "#2aa3b5", "#d0494b"];
const ORDERED = ["#30519c", "#3d6dad", "#4a8ab5", "#5ea6b3", "#80bfa5", "#aed191", "#dcd47c", "#f0c25e"];
const GREY = [141, 138, 132];
const MOST_REGIONS = 48; // that have colours of their own

export function rgb(hex) {
  const value = Number.parseInt(hex.trim().slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

export function isDark() {
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

// One for each value, grey for the last two: other values, and none.
export function valueColours(told) {
  const base = told.ordered ? ORDERED : CATEGORIES;
  return told.values.map((_, i) => (i < told.values.length - 2 ? rgb(base[i]) : GREY));
}

// The colour of each point's region, as a number, and what the numbers stand for. Hues go around the map,
// so that neighbours are akin; small regions share the colour of the one around them.
export function regionColours(told) {
  const { regions } = told;
  const own = new Set(coloured(regions));
  const around = [...own].sort((a, b) => angle(regions[a]) - angle(regions[b]));
  const dark = isDark();
  const palette = around.map((number, i) => {
    const out = Math.hypot(regions[number].x / 65535 - 0.5, regions[number].y / 65535 - 0.5);
    const light = (dark ? 0.72 : 0.62) + (i % 2 ? 0.05 : -0.04);
    return fromOklch(light, Math.min(0.15, 0.1 + 0.1 * out), (360 * i) / around.length);
  });
  const colourOf = new Map(around.map((number, i) => [number, i]));
  const inherited = [];
  regions.forEach((region, number) => { // parents come first
    inherited.push(colourOf.get(number) ?? (region.parent === null ? around.length : inherited[region.parent]));
  });
  return {
    palette: [...palette, GREY],
    of: Uint16Array.from(told.region_of, (number) => (number < 0 ? around.length : inherited[number])),
  };
}

// The largest regions, going down into them while there are colours left.
function coloured(regions) {
  const children = new Map();
  regions.forEach(({ parent }, number) => children.set(parent, [...(children.get(parent) ?? []), number]));
  const tops = (children.get(null) ?? []).sort((a, b) => regions[b].size - regions[a].size);
  const chosen = new Set(tops.slice(0, MOST_REGIONS));
  for (;;) {
    const parted = [...chosen].filter((number) => children.has(number)).sort((a, b) => regions[b].size - regions[a].size)[0];
    if (parted === undefined || chosen.size + children.get(parted).length > MOST_REGIONS) return [...chosen];
    for (const child of children.get(parted)) chosen.add(child);
    children.delete(parted);
  }
}

function angle({ x, y }) {
  return Math.atan2(y - 32768, x - 32768);
}

// Oklch keeps lightness the same to the eye whatever the hue. https://www.w3.org/TR/css-color-4/#ok-lab
function fromOklch(light, chroma, hue) {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const l = (light + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (light - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (light - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ].map((linear) => {
    const value = linear <= 0.0031308 ? 12.92 * linear : 1.055 * linear ** (1 / 2.4) - 0.055;
    return Math.round(255 * Math.min(1, Math.max(0, value)));
  });
}
