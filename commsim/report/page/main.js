// Put the page together.

const DRAW = { curves: drawCurves, heat: drawHeat, choice: drawChoice, cdf: drawCdf, scatter: drawScatter, spans: drawSpans };
const DATA = JSON.parse(document.getElementById("data").textContent);
const PALETTE = DATA.palette;
const TABLES = DATA.tables.map((raw) => new Table(raw));
const CHARTS = DATA.figures.map((figure) => new Chart(figure));

function showCount() {
  const { rows, n } = TABLES[DATA.rows];
  const failed = DATA.failed.length ? `; ${DATA.n_failed} points failed and are not shown: ${DATA.failed[0]}` : "";
  document.getElementById("count").textContent = `${rows.length} of ${n} rows shown${failed}`;
}

function start() {
  const filters = [];
  const changed = () => {
    applyFilters(filters, TABLES);
    showCount();
    for (const chart of CHARTS) if (!chart.figure.run) chart.draw();
  };
  const names = DATA.filters.filter((name) => TABLES[DATA.rows].column(name));
  for (const name of names) filters.push(new Filter(TABLES[DATA.rows].column(name), changed));
  if (filters.length) {
    const reset = element("button", { type: "button", text: "show all rows" });
    reset.addEventListener("click", () => { filters.forEach((filter) => filter.clear()); changed(); });
    const hint = element("p", { text: "Tick what to show; where nothing is ticked, all is shown." });
    document.getElementById("filters").append(hint, ...filters.map((filter) => filter.box), reset);
  }
  document.getElementById("filters").addEventListener("submit", (event) => event.preventDefault());
  document.getElementById("facts").textContent = DATA.facts;
  document.getElementById("figures").append(...CHARTS.map((chart) => chart.card));
  const list = element("dl", {});
  for (const [name, value] of Object.entries(DATA.provenance)) list.append(element("dt", { text: name }), element("dd", { text: value }));
  const left = element("ul", {}, ...Object.entries(DATA.left_out).map(([name, why]) => element("li", { text: `${name}: ${why}` })));
  document.getElementById("about").append(list);
  if (left.children.length) document.getElementById("about").append("Figures that are left out:", left);
  showCount();
  CHARTS.forEach((chart) => chart.draw());
  let waiting = 0;
  window.addEventListener("resize", () => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(() => CHARTS.forEach((chart) => chart.draw()));
  });
  document.body.dataset.drawn = String(CHARTS.length);
}

start();
