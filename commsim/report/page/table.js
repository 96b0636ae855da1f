// Tables as they are embedded: words and few different numbers as codes, other numbers as their bytes.

function bytesOf(text) {
  const plain = atob(text), out = new Uint8Array(plain.length);
  for (let i = 0; i < plain.length; i += 1) out[i] = plain.charCodeAt(i);
  return out;
}

class Column {
  constructor(raw) {
    this.name = raw.name;
    this.unit = raw.unit;
    this.labels = raw.labels || null;
    const bytes = bytesOf(raw.data);
    if (raw.type === "f8") {
      this.values = new Float64Array(bytes.buffer);
      return;
    }
    const codes = raw.type === "u1" ? bytes : new Uint16Array(bytes.buffer);
    const known = raw.labels ? raw.labels.map((_, i) => i) : raw.values;
    this.values = Float64Array.from(codes, (code) => (code < known.length ? known[code] : NaN));  // beyond: none
  }

  text(value) {
    if (Number.isNaN(value)) return "none";
    if (this.labels) return this.labels[value];
    return format(value, this.unit === "B/s" && DATA.filters.includes(this.name) ? "bit/s" : this.unit);  // rates of links
  }

  // Place of a value among all values, whatever the filters: its colour and mark stay the same.
  place(value) {
    if (!this.places) this.places = new Map(this.distinct(this.values.keys()).map((v, i) => [v, i]));
    return this.places.get(value);
  }

  distinct(rows) {
    const found = new Set();
    for (const i of rows) if (!Number.isNaN(this.values[i])) found.add(this.values[i]);
    return [...found].sort((a, b) => a - b);
  }
}

class Table {
  constructor(raw) {
    this.n = raw.n;
    this.columns = new Map(raw.columns.map((column) => [column.name, new Column(column)]));
    this.rows = Array.from({ length: raw.n }, (_, i) => i);  // those that pass the filters
  }

  column(name) { return this.columns.get(name); }
}

// Median of a column, and the least and greatest of two others, per combination of the keys' values, in their order.
function summarised(table, rows, keys, value, low = value, high = value) {
  const groups = new Map();
  const columns = keys.map((name) => table.column(name).values);
  const values = table.column(value).values;
  const lows = table.column(low).values, highs = table.column(high).values;
  for (const i of rows) {
    if (Number.isNaN(values[i])) continue;
    const key = columns.map((column) => column[i]);
    if (key.some(Number.isNaN)) continue;
    const name = key.join();
    let group = groups.get(name);
    if (!group) groups.set(name, group = { keys: key, values: [], low: Infinity, high: -Infinity });
    group.values.push(values[i]);
    if (lows[i] < group.low) group.low = lows[i];
    if (highs[i] > group.high) group.high = highs[i];
  }
  const out = [...groups.values()];
  for (const group of out) {
    group.n = group.values.length;
    group.median = median(group.values);
  }
  return out.sort((a, b) => compare(a.keys, b.keys));
}

function median(values) {
  values.sort((a, b) => a - b);
  const n = values.length;
  return (values[(n - 1) >> 1] + values[n >> 1]) / 2;
}

function compare(a, b) {
  for (let i = 0; i < a.length; i += 1) if (a[i] !== b[i]) return a[i] - b[i];
  return 0;
}
