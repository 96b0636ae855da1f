// The rows that pass the filters as a table that can be sorted, what failed, and what is where on the page.

const FEW_ROWS = 12;

class Rows {
  constructor(table, names) {
    this.table = table;
    this.columns = names.map((name) => table.column(name)).filter(Boolean);
    this.sorted = null;
    this.body = element("tbody", {});
    this.note = element("figcaption", {});
    this.heads = this.columns.map((column) => this.head(column));
    const save = element("button", { type: "button", text: "save as CSV" });
    save.addEventListener("click", () => saveNumbers("results", plainRows({ rows: this.ordered(), column: (name) => table.column(name) }, this.columns.map((c) => c.name))));
    const head = element("thead", {}, element("tr", {}, ...this.heads));
    const scroll = element("div", { className: "scroll rows", tabIndex: 0 }, element("table", {}, head, this.body));
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", "Results");
    this.card = element("figure", { className: "card wide", id: "figure-results" },
      element("h2", { text: "Results" }), scroll, element("div", { className: "controls" }, save), this.note);
  }

  head(column) {
    const button = element("button", { type: "button", text: wordOf(column.name), title: `sort by ${wordOf(column.name)}` });
    button.addEventListener("click", () => {
      this.falling = this.sorted === column && !this.falling;
      this.sorted = column;
      this.draw();
    });
    return element("th", { className: column.labels ? "word" : "" }, button);
  }

  ordered() {
    const { sorted, falling } = this, rows = [...this.table.rows];
    if (!sorted) return rows;
    const value = (i) => (Number.isNaN(sorted.values[i]) ? Infinity : falling ? -sorted.values[i] : sorted.values[i]);
    return rows.sort((a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : a - b));
  }

  draw() {
    const rows = this.ordered(), listed = rows.slice(0, MAX_LISTED);
    this.body.replaceChildren(...listed.map((i) => element("tr", {}, ...this.columns.map((column) => this.cell(column, i)))));
    this.columns.forEach((column, k) => {
      this.heads[k].setAttribute("aria-sort", this.sorted !== column ? "none" : this.falling ? "descending" : "ascending");
    });
    this.note.textContent = rows.length > listed.length
      ? `The first ${listed.length} of ${rows.length} rows; a click on a heading sorts all of them.` : "";
  }

  cell(column, i) { return element("td", { className: column.labels ? "word" : "", text: column.text(column.values[i]) }); }
}

function wordOf(name) { return DATA.words[name] || name; }

function showFailed() {
  if (!DATA.n_failed) return;
  const what = `${DATA.n_failed} ${DATA.n_failed > 1 ? "points" : "point"} failed and ${DATA.n_failed > 1 ? "are" : "is"} not shown`;
  const all = DATA.failed.map(([error, n]) => element("li", { text: n > 1 ? `${n} times: ${error}` : error }));
  const details = element("details", {}, element("summary", { text: what }), element("ul", {}, ...all));
  details.open = DATA.failed.length <= 3;
  document.getElementById("failed").append(details);
}

// Links to all cards, those of a run together.
function listContents(cards) {
  const list = element("ul", {});
  let run = "";
  for (const { card, title, of } of cards) {
    if (of !== run) list.append(element("li", { className: "run", text: of }));
    run = of;
    list.append(element("li", {}, element("a", { href: `#${card.id}`, text: title })));
  }
  if (cards.length > 2) document.getElementById("contents").append(element("h2", { text: "On this page" }), list);
}
