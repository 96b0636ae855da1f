// Filters: for each parameter, several values or a range. Nothing ticked means that all values are shown.

const MAX_TICKED = 60;

class Filter {
  constructor(column, changed) {
    this.column = column;
    this.ticked = new Set();
    this.range = [-Infinity, Infinity];
    this.box = element("fieldset", {}, element("legend", { text: wordOf(column.name) }));
    const values = column.distinct(column.values.keys());
    if (values.length <= MAX_TICKED || column.labels) this.ticks(values, changed);
    else this.bounds(values, changed);
  }

  ticks(values, changed) {
    const list = element("div", { className: "values" });
    for (const value of values) {
      const box = element("input", { type: "checkbox" });
      box.dataset.column = this.column.name;
      box.dataset.value = this.column.text(value);
      box.addEventListener("change", () => {
        if (box.checked) this.ticked.add(value); else this.ticked.delete(value);
        changed();
      });
      list.append(element("label", {}, box, element("span", { text: this.column.text(value) })));
    }
    this.box.append(list);
  }

  bounds(values, changed) {
    ["from", "to"].forEach((word, side) => {
      const box = element("input", { type: "number", step: "any", placeholder: String(values[side ? values.length - 1 : 0]) });
      box.addEventListener("change", () => {
        this.range[side] = box.value === "" ? [-Infinity, Infinity][side] : Number(box.value);
        changed();
      });
      this.box.append(element("label", {}, `${word} (${this.column.unit || "number"}) `, box));
    });
  }

  clear() {
    this.ticked.clear();
    this.range = [-Infinity, Infinity];
    for (const box of this.box.querySelectorAll("input")) { box.checked = false; if (box.type === "number") box.value = ""; }
  }

  // Whether a row of any table that has this column passes; what a measurement does not say is no reason to hide it.
  mask(table) {
    const column = table.column(this.column.name);
    const wanted = column && column.labels ? new Set([...this.ticked].map((v) => this.column.labels[v])) : this.ticked;
    const [low, high] = this.range;
    const all = !column || (!this.ticked.size && low === -Infinity && high === Infinity);
    return (i) => {
      if (all) return true;
      const value = column.values[i];
      if (Number.isNaN(value)) return table !== TABLES[DATA.rows];
      if (this.ticked.size && !wanted.has(column.labels ? column.labels[value] : value)) return false;
      return value >= low && value <= high;
    };
  }
}

function applyFilters(filters, tables) {
  for (const table of tables) {
    const masks = filters.map((filter) => filter.mask(table));
    const rows = [];
    for (let i = 0; i < table.n; i += 1) if (masks.every((passes) => passes(i))) rows.push(i);
    table.rows = rows;
  }
}

function element(name, properties, ...children) {
  const { text, ...others } = properties;
  const made = Object.assign(document.createElement(name), others);
  if (text !== undefined) made.textContent = text;
  made.append(...children);
  return made;
}
