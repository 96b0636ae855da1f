// Shares of rows within a time, and predictions over measurements.

function drawCdf(chart) {
  const { roles, table, figure } = chart;
  const by = roles.by && table.column(roles.by), xs = table.column(roles.x);
  const series = new Map();
  for (const i of table.rows) {
    const value = by ? by.values[i] : 0;
    if (Number.isNaN(value) || Number.isNaN(xs.values[i])) continue;
    if (!series.has(value)) series.set(value, []);
    series.get(value).push(xs.values[i]);
  }
  const x = new Axis([...series.values()].flat(), xs.unit, figure.log.includes("x"));
  const y = new Axis([0, 1], "", false);
  chart.axes(x, y);
  chart.shown = { names: [...(by ? [roles.by] : []), roles.x, "share"], units: [...(by ? [by.unit] : []), xs.unit, ""], rows: [] };
  [...series.entries()].sort((a, b) => a[0] - b[0]).forEach(([value, times], at) => {
    times.sort((a, b) => a - b);
    const name = by ? by.text(value) : "all rows";
    times.forEach((t, k) => chart.shown.rows.push([...(by ? [name] : []), t, (k + 1) / times.length]));
    if (at < MAX_SERIES) drawSteps(chart, times, x, y, by ? by.place(value) : 0, name);
  });
  noteMore(chart, series.size);
}

function drawSteps(chart, times, x, y, i, name) {
  const points = [], n = times.length;
  times.forEach((t, k) => { if (x.shows(t)) points.push([x.at(t), y.at(k / n)], [x.at(t), y.at((k + 1) / n)]); });
  points.push([chart.area.right, y.at(1)]);
  chart.pen.strokeStyle = seriesColour(i);
  chart.pen.lineWidth = 1.7;
  chart.line(points, [[], [7, 3], [2, 2], [9, 3, 2, 3]][i % 4]);
  chart.explain(["━━", "╍╍", "┄┄", "━·"][i % 4], seriesColour(i), name);
  const every = Math.max(1, Math.floor(n / 200));
  for (let k = 0; k < n; k += every) {
    const says = () => `${name}\n${(100 * (k + 1) / n).toPrecision(3)} % within ${format(times[k], x.unit)}`;
    if (x.shows(times[k])) chart.hits.push({ x: x.at(times[k]), y: y.at((k + 1) / n), says });
  }
}

function drawScatter(chart) {
  const { roles, table, figure } = chart;
  const by = roles.by && table.column(roles.by), xs = table.column(roles.x), ys = table.column(roles.y);
  showRows(chart);
  const x = new Axis(table.rows.map((i) => xs.values[i]), xs.unit, figure.log.includes("x"));
  const y = new Axis([0.8, 1.25, ...table.rows.map((i) => ys.values[i])], "", figure.log.includes("y"));
  chart.fit(x, y);
  const { pen, area } = chart;
  pen.fillStyle = PALETTE.band;
  pen.fillRect(area.left, y.at(1.1), area.right - area.left, y.at(0.9) - y.at(1.1));
  chart.axes(x, y);
  pen.strokeStyle = PALETTE.ink;
  chart.line([[area.left, y.at(1)], [area.right, y.at(1)]], [6, 4]);
  const order = by ? by.distinct(table.rows) : [0];
  for (const i of table.rows) {
    if (!x.shows(xs.values[i]) || !y.shows(ys.values[i])) continue;
    const k = by ? by.place(by.values[i]) : 0, px = x.at(xs.values[i]), py = y.at(ys.values[i]);
    chart.write(seriesGlyph(k), px, py, "center", seriesColour(k));
    chart.hits.push({ x: px, y: py, says: () => scatterWords(chart, i) });
  }
  if (by) order.slice(0, MAX_SERIES).forEach((v) => chart.explain(seriesGlyph(by.place(v)), seriesColour(by.place(v)), by.text(v)));
  chart.explain("■", PALETTE.band, "within 10 %");
}

function scatterWords(chart, i) {
  const { table } = chart, of = (name) => table.column(name) && table.column(name).text(table.column(name).values[i]);
  const more = DATA.filters.filter(of).map((name) => `${wordOf(name)}: ${of(name)}`);
  return [`measured: ${of("measured_s")}`, `predicted: ${of("predicted_s")}`, `ratio: ${of("predicted_over_measured")}`, ...more].join("\n");
}
