// The numbers of a figure as a table under it, and as a CSV file.

const MAX_LISTED = 200;

function numbersOf(chart) {
  const place = element("div", {});
  const save = element("button", { type: "button", text: "save as CSV" });
  save.addEventListener("click", () => saveNumbers(chart.figure.id, chart.shown()));
  const details = element("details", {}, element("summary", { text: "the numbers" }), save, place);
  chart.filled = () => details.open && listNumbers(chart.shown(), place);
  details.addEventListener("toggle", chart.filled);
  return details;
}

function heads(shown) { return shown.names.map((name, i) => (shown.units[i] ? `${name} [${shown.units[i]}]` : name)); }

function listNumbers(shown, place) {
  const head = element("tr", {}, ...heads(shown).map((text) => element("th", { text })));
  const rows = shown.rows.slice(0, MAX_LISTED).map((row) => element("tr", {}, ...row.map((v) => element("td", { text: v ?? "" }))));
  place.replaceChildren(element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows)));
  if (shown.rows.length > MAX_LISTED) place.append(`the first ${MAX_LISTED} of ${shown.rows.length} rows`);
}

function saveNumbers(name, shown) {
  const quoted = (v) => (/[",\n\r]/.test(String(v)) ? `"${String(v).replaceAll('"', '""')}"` : v === null || Number.isNaN(v) ? "" : String(v));
  const text = [heads(shown), ...shown.rows].map((row) => row.map(quoted).join()).join("\n");
  const link = element("a", { download: `${name}.csv`, href: URL.createObjectURL(new Blob([`${text}\n`])) });
  link.click();
  URL.revokeObjectURL(link.href);
}

// Rows of a table as they are.
function plainRows(table, names) {
  const columns = names.map((name) => table.column(name));
  return {
    names, units: columns.map((c) => c.unit),
    rows: table.rows.map((i) => columns.map((c) => (c.labels ? c.text(c.values[i]) : c.values[i]))),
  };
}
