// A card with one figure that Vega draws: what is chosen above it, caption, zoom, tooltip, and its numbers as a table.

class Chart {
  constructor(figure) {
    this.figure = figure;
    this.table = TABLES[figure.table];
    this.by = figure.by;
    this.place = element("div", { className: "chart" });
    this.controls = element("div", { className: "controls" });
    this.bound = element("span", {});
    this.controls.append(this.bound);
    this.remark = element("p", { className: "remark" });
    const title = element("h2", { text: figure.title });
    if (figure.run) title.append(element("small", { text: ` ${figure.run}` }));
    const wide = ["spans", "picture"].includes(figure.kind) || ["links", "racks", "tiers", "fullest", "ways"].includes(figure.name);
    this.card = element("figure", { className: wide ? "card wide" : "card", id: `figure-${figure.id}` }, title, this.controls);
    this.card.append(figure.kind === "picture" ? pictureOf(this) : this.place, this.remark);
    this.card.append(element("figcaption", { text: figure.caption }), numbersOf(this));
    if (Object.keys(figure.specs || {}).length > 1) this.chooser();
    if (figure.zooms) this.zoomButtons();
  }

  // Which column has a colour per value.
  chooser() {
    const box = element("select", {}, ...Object.keys(this.figure.specs).map((name) => element("option", { value: name, text: wordOf(name) })));
    box.value = this.by;
    box.addEventListener("change", () => { this.by = box.value; this.draw(); });
    this.controls.append(element("label", {}, "colour by ", box));
  }

  zoomButtons() {
    const all = [["+", "zoom in", 0.5, 0], ["−", "zoom out", 2, 0], ["◀", "earlier", 1, -0.5], ["▶", "later", 1, 0.5], ["all", "show all", 0, 0]];
    for (const [text, title, factor, by] of all) {
      const button = element("button", { type: "button", text, title, ariaLabel: title });
      button.addEventListener("click", () => this.zoom(factor, by));
      this.controls.append(button);
    }
  }

  // Show another part of the x axis: so many times as much, so much further; all of it for the factor 0.
  zoom(factor, by) {
    const name = `zoom_${this.figure.zooms}`, logarithmic = this.figure.log.includes("x");
    const [low, high] = this.view.scale("x").domain().map((v) => (logarithmic ? Math.log(v) : v));
    const middle = (low + high) / 2 + by * (high - low), half = (high - low) * factor / 2;
    this.view.signal(name, factor ? [middle - half, middle + half].map((v) => (logarithmic ? Math.exp(v) : v)) : null).run();
  }

  spec() { return this.figure.specs[this.by] || Object.values(this.figure.specs)[0]; }

  // Rows that pass the filters, with the fields of the specification.
  rows(table, names) {
    const columns = names.map((name) => table.column(name));
    const words = columns.map((column) => (column.labels ? (v) => column.labels[v] : (v) => v));
    const fields = names.map((_, k) => `f${k}`);
    return table.rows.map((i) => {
      const row = {};
      columns.forEach((column, k) => { const v = column.values[i]; row[fields[k]] = Number.isNaN(v) ? null : words[k](v); });
      return row;
    });
  }

  // All data of the figure by name.
  data() {
    const { fields, points, kind } = this.figure, found = { rows: this.rows(this.table, fields[this.by] || Object.values(fields)[0]) };
    if (kind === "curves" && points !== undefined) found.points = this.rows(TABLES[points], [...TABLES[points].columns.keys()]);
    return found;
  }

  async draw() {
    if (this.figure.kind === "picture") { fitPicture(this); this.filled(); return; }
    const config = structuredClone(THEMES[THEME]), spec = { ...this.spec(), datasets: this.data() };
    this.bound.replaceChildren();
    const made = await vegaEmbed(this.place, spec, {
      mode: "vega-lite", renderer: "canvas", actions: false, ast: true, defaultStyle: false, logLevel: 1, config, tooltip: (_, event, item, value) => this.tell(event, item, value), bind: this.bound,
      expressionFunctions: { quantity: format, axisTicks },
    });
    if (this.view) this.view.finalize();
    this.view = made.view;
    this.source = sourceOf(made.vgSpec.marks);
    this.note();
    this.filled();
  }

  // Say the values of the mark under the mouse.
  tell(event, item, value) {
    const { told } = this.spec().usermeta, name = value && Object.keys(told).find((one) => item.mark.name.startsWith(one));
    const lines = name ? told[name].filter(({ field }) => value[field] !== null && value[field] !== undefined) : [];
    tooltip(event?.clientX, event?.clientY, lines.map(({ field, title, unit }) => `${title}: ${unit === null ? value[field] : format(value[field], unit)}`).join("\n"));
  }

  // Draw the rows that pass the filters now.
  async fill() {
    if (!this.view) return;
    for (const [name, rows] of Object.entries(this.data())) this.view.data(name, rows);
    await this.view.runAsync();
    this.note();
    this.filled();
  }

  // Say which parameters vary among the rows that one point or cell sums up.
  note() {
    this.remark.textContent = "";
    if (this.figure.run || !["curves", "heat", "choice"].includes(this.figure.kind)) return;
    if (!this.table.rows.length) { this.remark.textContent = "no row passes the filters"; return; }
    const keys = this.figure.fields[this.by] || Object.values(this.figure.fields)[0];
    const mixed = DATA.filters.filter((name) => {
      const column = this.table.column(name);
      return column && !keys.includes(name) && !(name.startsWith("collective") && keys.includes("collective")) && column.distinct(this.table.rows).length > 1;
    });
    const what = this.figure.kind === "curves" ? "point" : "cell";
    if (mixed.length) this.remark.textContent = `Each ${what} is a median over all values of ${mixed.map(wordOf).join(", ")} that are shown: filter to tell them apart.`;
  }

  // What is drawn now, as names with units and rows.
  shown() {
    if (this.figure.kind === "picture") return plainRows(this.table, this.figure.fields[""]);
    const fields = this.figure.fields[this.by] || Object.values(this.figure.fields)[0];
    const rows = this.view.data(this.source), known = rows.length ? Object.keys(rows[0]) : [];
    known.sort((a, b) => (a === "rows") - (b === "rows"));
    const { value } = this.figure, sums = { median: value, least: `least_${value}`, greatest: `greatest_${value}` };
    const names = known.map((field) => (/^f\d+$/.test(field) ? fields[Number(field.slice(1))] : sums[field] || field));
    const units = known.map((field, k) => this.table.column(sums[field] ? value : names[k])?.unit || "");
    return { names, units, rows: rows.map((row) => known.map((field) => row[field])) };
  }
}

// The data that the first mark draws which is not an axis or a legend.
function sourceOf(marks) {
  for (const mark of marks) {
    if (mark.name && mark.name.includes("drawn")) return mark.from.facet ? mark.from.facet.data : mark.from.data;
    const inside = mark.marks ? sourceOf(mark.marks) : null;
    if (inside) return inside;
  }
  return null;
}

function tooltip(x, y, text) {
  const box = document.getElementById("tooltip");
  box.hidden = !text;
  if (!text) return;
  box.textContent = text;
  box.style.left = `${Math.max(4, Math.min(x + 14, window.innerWidth - box.offsetWidth - 8))}px`;
  box.style.top = `${Math.max(4, Math.min(y + 14, window.innerHeight - box.offsetHeight - 8))}px`;
}
