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
