// Numbers with units as text, and round numbers for axes.

function scaled(value, step, names, digits) {
  let at = 0;
  while (Math.abs(value) >= step * (1 - 1e-12) && at < names.length - 1) { value /= step; at += 1; }
  return `${Number(value.toPrecision(digits))} ${names[at]}`;
}

function format(value, unit, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "none";
  if (unit === "%") return `${Number((100 * value).toPrecision(3))} %`;
  if (unit === "B") return scaled(value, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"], digits);
  if (unit === "B/s") return scaled(value, 1000, ["B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s"], digits);
  if (unit === "bit/s") return scaled(value * 8, 1000, ["bit/s", "kb/s", "Mb/s", "Gb/s", "Tb/s", "Pb/s"], digits);
  if (unit !== "s") return String(Number(value.toPrecision(Number.isInteger(value) ? 16 : digits)));
  if (value === 0) return "0 s";
  if (Math.abs(value) >= 1) return `${Number(value.toPrecision(digits))} s`;
  return scaled(value * 1e9, 1000, ["ns", "µs", "ms"], digits);
}

// Ticks from low to high: 1, 2 and 5 of few decades, each decade of many; steps of KiB or MiB for bytes.
function axisTicks([low, high], unit, logarithmic) {
  const found = [];
  if (logarithmic) {
    const decades = Math.log10(high / low), base = unit === "B" ? 1024 : 10;
    const factors = base === 1024 ? [1, 4, 16, 64, 256] : decades > 2.5 ? [1] : [1, 2, 5];
    for (let e = Math.floor(Math.log(low) / Math.log(base)); base ** e <= high; e += 1) for (const f of factors) found.push(f * base ** e);
    const shown = found.filter((t) => t >= low && t <= high);
    if (shown.length > 1) return shown;
    found.length = 0;
  }
  const whole = Math.max(Math.abs(low), Math.abs(high));
  const scale = unit === "B" && whole > 1024 ? 1024 ** Math.floor(Math.log2(whole) / 10) : 1;
  let step = scale * 10 ** Math.floor(Math.log10((high - low) / scale / 6));
  step *= [1, 2, 5, 10].find((f) => (high - low) / (step * f) <= 6) || 10;
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high * (1 + 1e-12); i += 1) found.push(i * step);
  return found;
}
