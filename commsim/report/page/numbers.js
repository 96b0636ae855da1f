// The numbers of a figure as a table under it, and as a CSV file.

const MAX_LISTED = 200;

function numbersOf(chart) {
  const place = element("div", {});
  const save = element("button", { type: "button", text: "save as CSV" });
  save.addEventListener("click", () => saveNumbers(chart));
  const details = element("details", {}, element("summary", { text: "the numbers" }), save, place);
  chart.filled = () => details.open && listNumbers(chart, place);
  details.addEventListener("toggle", chart.filled);
  return details;
}

function heads(shown) { return shown.names.map((name, i) => (shown.units[i] ? `${name} [${shown.units[i]}]` : name)); }

function listNumbers(chart, place) {
  const { shown } = chart, head = element("tr", {}, ...heads(shown).map((text) => element("th", { text })));
  const rows = shown.rows.slice(0, MAX_LISTED).map((row) => element("tr", {}, ...row.map((v) => element("td", { text: v }))));
  place.replaceChildren(element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows)));
  if (shown.rows.length > MAX_LISTED) place.append(`the first ${MAX_LISTED} of ${shown.rows.length} rows`);
}

function saveNumbers(chart) {
  const quoted = (v) => (/[",\n\r]/.test(String(v)) ? `"${String(v).replaceAll('"', '""')}"` : Number.isNaN(v) ? "" : String(v));
  const text = [heads(chart.shown), ...chart.shown.rows].map((row) => row.map(quoted).join()).join("\n");
  const link = element("a", { download: `${chart.figure.id}.csv`, href: URL.createObjectURL(new Blob([`${text}\n`])) });
  link.click();
  URL.revokeObjectURL(link.href);
}

// Rows as they are, for figures that draw each of them.
function showRows(chart) {
  const names = [...chart.table.columns.keys()].filter((name) => chart.figure.uses.includes(name));
  const columns = names.map((name) => chart.table.column(name));
  chart.shown = {
    names, units: columns.map((c) => c.unit),
    rows: chart.table.rows.map((i) => columns.map((c) => (c.labels ? c.text(c.values[i]) : c.values[i]))),
  };
}
