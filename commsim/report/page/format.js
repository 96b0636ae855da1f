// Numbers with units as text, and the ticks of axes.

function scaled(value, step, names) {
  let at = 0;
  while (Math.abs(value) >= step * (1 - 1e-12) && at < names.length - 1) { value /= step; at += 1; }
  return `${Number(value.toPrecision(4))} ${names[at]}`;
}

function format(value, unit) {
  if (value === null || Number.isNaN(value)) return "none";
  if (unit === "B") return scaled(value, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);
  if (unit === "B/s") return scaled(value, 1000, ["B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s"]);
  if (unit !== "s") return String(Number(value.toPrecision(4)));
  if (value === 0) return "0 s";
  if (Math.abs(value) >= 1) return `${Number(value.toPrecision(4))} s`;
  return scaled(value * 1e9, 1000, ["ns", "us", "ms"]);
}

// An axis from low to high over pixels; equal factors take equal lengths when it is logarithmic.
class Axis {
  constructor(values, unit, logarithmic, { zero = false } = {}) {
    this.unit = unit;
    this.logarithmic = logarithmic;
    let low = Infinity, high = -Infinity;
    this.base = unit === "B" ? 2 : 10;
    if (unit === "" && logarithmic && values.every(Number.isInteger)) this.base = 2;  // numbers of ranks
    for (const v of values) {
      if (!Number.isFinite(v) || (logarithmic && v <= 0)) continue;
      if (v < low) low = v;
      if (v > high) high = v;
    }
    if (low > high) { low = logarithmic ? 1 : 0; high = logarithmic ? 10 : 1; }
    if (logarithmic && low === high) { low /= 1.5; high *= 1.5; }
    if (!logarithmic) {
      if (zero) low = Math.min(0, low);
      if (high <= low) high = low + (Math.abs(low) || 1);
      if (zero) high += 0.06 * (high - low);
    }
    this.low = low;
    this.high = high;
  }

  between(from, to) { this.from = from; this.to = to; return this; }

  shows(value) { return Number.isFinite(value) && (!this.logarithmic || value > 0); }

  at(value) {
    const scale = this.logarithmic ? Math.log : (v) => v;
    return this.from + (scale(value) - scale(this.low)) / (scale(this.high) - scale(this.low)) * (this.to - this.from);
  }

  value(pixel) {
    const part = (pixel - this.from) / (this.to - this.from);
    return this.logarithmic ? this.low * (this.high / this.low) ** part : this.low + (this.high - this.low) * part;
  }

  ticks(most = 7) {
    const found = this.logarithmic ? this.factors(most) : [];
    return found.length > 1 ? found : this.steps(most);
  }

  factors(most) {
    const base = this.base;
    const first = Math.floor(Math.log(this.low) / Math.log(base)), last = Math.ceil(Math.log(this.high) / Math.log(base));
    const every = Math.max(1, Math.ceil((last - first) / most));
    const fine = base === 10 && last - first < 3 ? [1, 2, 5] : [1];
    const found = [];
    for (let e = first; e <= last; e += every) for (const f of fine) found.push(f * base ** e);
    return found.filter((t) => t >= this.low * 0.999 && t <= this.high * 1.001);
  }

  steps(most) {
    let step = 10 ** Math.floor(Math.log10((this.high - this.low) / most));
    step *= [1, 2, 5, 10].find((f) => (this.high - this.low) / (step * f) <= most);
    const found = [];
    for (let i = Math.ceil(this.low / step - 1e-9); i * step <= this.high * (1 + 1e-12); i += 1) found.push(i * step);
    return found;
  }
}
