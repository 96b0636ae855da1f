// Numbers with units as text, and the ticks of axes.

function scaled(value, step, names, digits) {
  let at = 0;
  while (Math.abs(value) >= step * (1 - 1e-12) && at < names.length - 1) { value /= step; at += 1; }
  return `${Number(value.toPrecision(digits))} ${names[at]}`;
}

function format(value, unit, digits = 4) {
  if (value === null || Number.isNaN(value)) return "none";
  if (unit === "B") return scaled(value, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"], digits);
  if (unit === "B/s") return scaled(value, 1000, ["B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s"], digits);
  if (unit === "bit/s") return scaled(value * 8, 1000, ["bit/s", "kb/s", "Mb/s", "Gb/s", "Tb/s", "Pb/s"], digits);
  if (unit !== "s") return String(Number(value.toPrecision(Number.isInteger(value) ? 16 : digits)));
  if (value === 0) return "0 s";
  if (Math.abs(value) >= 1) return `${Number(value.toPrecision(digits))} s`;
  return scaled(value * 1e9, 1000, ["ns", "µs", "ms"], digits);
}

// An axis from low to high over pixels; equal factors take equal lengths when it is logarithmic.
class Axis {
  constructor(values, unit, logarithmic, { zero = false, pad = true } = {}) {
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
    if (logarithmic && high < low * (1 + 1e-6)) { low /= 1.5; high *= 1.5; }
    if (logarithmic && pad) { const edge = (high / low) ** 0.03; low /= edge; high *= edge; }
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

  // What is written at ticks: as many digits as it takes to tell them apart.
  labels(ticks = this.ticks()) {
    for (let digits = 4; digits < 15; digits += 1) {
      const texts = ticks.map((t) => format(t, this.unit, digits));
      if (new Set(texts).size === texts.length) return texts;
    }
    return ticks.map((t) => format(t, this.unit, 15));
  }

  factors(most) {
    const base = this.base;
    if (base === 10) {
      const fine = this.multiples([1, 2, 5]), three = this.multiples([1, 3]);
      if (fine.length <= most) return fine;
      if (three.length <= most && Math.log10(this.high / this.low) < 3) return three;
    }
    const first = Math.ceil(Math.log(this.low) / Math.log(base) - 1e-9), last = Math.ceil(Math.log(this.high) / Math.log(base));
    const every = Math.max(1, Math.ceil((last - first) / most));
    const found = [];
    for (let e = first; e <= last; e += every) found.push(base ** e);
    return found.filter((t) => t >= this.low * 0.999 && t <= this.high * 1.001);
  }

  multiples(factors) {
    const found = [], last = Math.ceil(Math.log10(this.high));
    for (let e = Math.floor(Math.log10(this.low)); e <= last; e += 1) for (const f of factors) found.push(f * 10 ** e);
    return found.filter((t) => t >= this.low * 0.999 && t <= this.high * 1.001);
  }

  steps(most) {
    // of bytes, round numbers of KiB, MiB and so on
    const whole = Math.max(Math.abs(this.low), Math.abs(this.high));
    const unit = this.unit === "B" && whole > 1024 ? 1024 ** Math.floor(Math.log2(whole) / 10) : 1;
    let step = unit * 10 ** Math.floor(Math.log10((this.high - this.low) / unit / most));
    step *= [1, 2, 5, 10].find((f) => (this.high - this.low) / (step * f) <= most);
    const found = [];
    for (let i = Math.ceil(this.low / step - 1e-9); i * step <= this.high * (1 + 1e-12); i += 1) found.push(i * step);
    return found;
  }
}
