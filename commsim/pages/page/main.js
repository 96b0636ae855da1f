// Put the page together.

const DATA = JSON.parse(document.getElementById("data").textContent);
const THEMES = DATA.themes;
const DARK = matchMedia("(prefers-color-scheme: dark)");
const TABLES = DATA.tables.map((raw) => new Table(raw));
const CHARTS = DATA.figures.map((figure) => new Chart(figure));
const RESULTS = new Rows(TABLES[DATA.rows], DATA.listed);
let THEME = DARK.matches ? "dark" : "light";

function showCount() {
  const { rows, n } = TABLES[DATA.rows];
  document.getElementById("count").textContent = `${rows.length} of ${n} rows shown`;
}

function makeFilters() {
  const filters = [], form = document.getElementById("filters");
  const changed = () => {
    applyFilters(filters, TABLES);
    showCount();
    RESULTS.draw();
    for (const chart of CHARTS) if (!chart.figure.run) chart.fill();
  };
  const names = DATA.filters.filter((name) => TABLES[DATA.rows].column(name));
  for (const name of names) filters.push(new Filter(TABLES[DATA.rows].column(name), changed));
  form.addEventListener("submit", (event) => event.preventDefault());
  if (!filters.length) return;
  const reset = element("button", { type: "button", text: "show all rows" });
  reset.addEventListener("click", () => { filters.forEach((filter) => filter.clear()); changed(); });
  const hint = element("p", { text: "Tick what to show; where nothing is ticked, all is shown. Runs in detail are not filtered." });
  if (!CHARTS.some((chart) => chart.figure.run)) hint.textContent = "Tick what to show; where nothing is ticked, all is shown.";
  form.append(hint, ...filters.map((filter) => filter.box), reset);
}

// All cards in their order: a table of few rows comes first, one of many after the figures that are made of it.
function placeCards() {
  const of = (chart) => ({ card: chart.card, title: chart.figure.title, of: chart.figure.run });
  const ofRows = CHARTS.filter((chart) => !chart.figure.run).map(of), ofRuns = CHARTS.filter((chart) => chart.figure.run).map(of);
  const results = { card: RESULTS.card, title: "Results", of: "" }, { n } = TABLES[DATA.rows];
  const cards = [...(n <= FEW_ROWS ? [results, ...ofRows] : [...ofRows, results]), ...ofRuns].filter((one) => n || one !== results);
  document.getElementById("figures").append(...cards.map((one) => one.card));
  listContents(cards);
}

function about() {
  const place = document.getElementById("about"), list = element("dl", {});
  for (const [name, value] of Object.entries(DATA.provenance)) list.append(element("dt", { text: name }), element("dd", { text: value }));
  const left = element("ul", {}, ...Object.entries(DATA.left_out).map(([name, why]) => element("li", { text: `${name}: ${why}` })));
  place.append(list);
  if (left.children.length) place.append("Figures that are left out:", left);
}

function start() {
  document.getElementById("facts").textContent = DATA.facts;
  document.getElementById("remarks").append(...DATA.remarks.map((text) => element("li", { text })));
  makeFilters();
  placeCards();
  about();
  showFailed();
  showCount();
  RESULTS.draw();
  DARK.addEventListener("change", () => paint(DARK.matches));
  window.addEventListener("beforeprint", () => paint(false));  // paper is white
  window.addEventListener("afterprint", () => paint(DARK.matches));
  window.addEventListener("resize", () => CHARTS.filter((chart) => chart.svg).forEach(fitPicture));
  drawInTurn().then(() => { document.body.dataset.drawn = String(CHARTS.length); });
}

async function paint(dark) {
  THEME = dark ? "dark" : "light";
  await drawAll();
}

// One figure after the other, with time for the reader in between.
async function drawInTurn() {
  for (const chart of CHARTS) {
    await chart.draw();
    await new Promise((resume) => { setTimeout(resume); });
  }
}

async function drawAll() { for (const chart of CHARTS) await chart.draw(); }

start();
