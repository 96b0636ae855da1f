// Curves over an axis: medians between least and greatest, shares of rows, and predictions over measurements.

function drawCurves(chart) {
  const { roles, table, figure } = chart;
  const keys = roles.by ? [roles.by, roles.x] : [roles.x];
  const found = summarised(table, table.rows, keys, roles.y, roles.low, roles.high);
  const by = roles.by && table.column(roles.by), xs = table.column(roles.x), ys = table.column(roles.y);
  chart.shown = {
    names: [...keys, roles.y, `least_${roles.y}`, `greatest_${roles.y}`, "rows"],
    units: [...keys.map((k) => table.column(k).unit), ys.unit, ys.unit, ys.unit, ""],
    rows: found.map((g) => [...(by ? [by.text(g.keys[0])] : []), xs.labels ? xs.text(g.keys.at(-1)) : g.keys.at(-1), g.median, g.low, g.high, g.n]),
  };
  const rules = roles.rule ? ruleValues(table, roles.rule) : [];
  const points = figure.points === undefined ? [] : measuredPoints(chart, TABLES[figure.points]);
  const x = new Axis([...found.map((g) => g.keys.at(-1)), ...points.map((p) => p.x)], xs.unit, figure.log.includes("x"));
  const spread = [...found.flatMap((g) => [g.low, g.high]), ...points.flatMap((p) => [p.y, p.high, p.low]), ...rules];
  const y = new Axis(spread, ys.unit, figure.log.includes("y"), { zero: true });
  chart.axes(x, y);
  for (const rule of rules) drawRule(chart, y, rule);
  const series = groupSeries(found, Boolean(by));
  [...series.entries()].slice(0, MOST_SERIES).forEach(([value, groups]) => {
    const i = by ? by.place(value) : 0, name = by ? by.text(value) : figure.words.y;
    drawSeries(chart, groups, x, y, i, (g) => `${name}\n${figure.words.x}: ${xs.text(g.keys.at(-1))}\n${figure.words.y}: `
      + `${format(g.median, ys.unit)}` + (g.low < g.high ? ` (${format(g.low, ys.unit)} to ${format(g.high, ys.unit)})` : "")
      + (g.n > 1 ? `\nmedian of ${g.n} rows` : ""));
    chart.explain(seriesGlyph(i), seriesColour(i), name);
  });
  noteMore(chart, series.size);
  drawMeasured(chart, points, x, y);
}

function groupSeries(found, split) {
  const series = new Map();
  for (const group of found) {
    const value = split ? group.keys[0] : 0;
    if (!series.has(value)) series.set(value, []);
    series.get(value).push(group);
  }
  return series;
}

function noteMore(chart, n) {
  if (n > MOST_SERIES) chart.explain("", PALETTE.ink, `and ${n - MOST_SERIES} more: use the filters, or another colour`);
}

function ruleValues(table, name) {
  const values = table.column(name).distinct(table.rows);
  return values.length <= 6 ? values : [values[0], values.at(-1)];
}

function drawRule(chart, y, value) {
  chart.pen.strokeStyle = PALETTE.ink;
  chart.pen.lineWidth = 1.2;
  const at = y.at(value), { left, right } = chart.area;
  chart.line([[left, at], [right, at]], [6, 4]);
  chart.write(`line rate ${format(value, y.unit)}`, left + 6, at - 7, "left", PALETTE.ink);
  chart.hits.push({ x: left, y: at - 3, w: right - left, h: 6, says: () => `line rate: ${format(value, y.unit)}` });
}

function drawSeries(chart, groups, x, y, i, says) {
  const shown = groups.filter((g) => x.shows(g.keys.at(-1)) && y.shows(g.median));
  const pen = chart.pen, at = shown.map((g) => [x.at(g.keys.at(-1)), y.at(g.median)]);
  const edge = (g, side) => [x.at(g.keys.at(-1)), y.at(y.shows(g[side]) ? g[side] : g.median)];
  if (shown.some((g) => g.low < g.high)) {
    pen.globalAlpha = 0.16;
    pen.fillStyle = seriesColour(i);
    pen.beginPath();
    [...shown.map((g) => edge(g, "high")), ...shown.map((g) => edge(g, "low")).reverse()]
      .forEach(([px, py], k) => (k ? pen.lineTo(px, py) : pen.moveTo(px, py)));
    pen.fill();
    pen.globalAlpha = 1;
  }
  pen.strokeStyle = seriesColour(i);
  pen.lineWidth = 1.7;
  chart.line(at);
  at.forEach(([px, py], k) => {
    chart.write(seriesGlyph(i), px, py, "center", seriesColour(i));
    chart.hits.push({ x: px, y: py, says: () => says(shown[k]) });
  });
}

function measuredPoints(chart, table) {
  const of = (name) => (table.column(name) ? table.column(name).values : null);
  const xs = of(chart.roles.x), ys = of(chart.roles.y), lows = of(chart.roles.low), highs = of(chart.roles.high);
  const source = table.column("source"), name = table.column("collective");
  if (!xs || !ys) return [];
  return table.rows.filter((i) => Number.isFinite(ys[i])).map((i) => ({
    x: xs[i], y: ys[i], low: lows ? lows[i] : NaN, high: highs ? highs[i] : NaN,
    says: () => `measured: ${format(ys[i], table.column(chart.roles.y).unit)}\n${format(xs[i], table.column(chart.roles.x).unit)}`
      + `${name && !Number.isNaN(name.values[i]) ? `\n${name.text(name.values[i])}` : ""}\n${source.text(source.values[i])}`,
  }));
}

function drawMeasured(chart, points, x, y) {
  chart.pen.strokeStyle = PALETTE.ink;
  chart.pen.lineWidth = 1.4;
  for (const point of points) {
    if (!x.shows(point.x) || !y.shows(point.y)) continue;
    const px = x.at(point.x), py = y.at(point.y);
    if (y.shows(point.low) && y.shows(point.high)) chart.line([[px, y.at(point.low)], [px, y.at(point.high)]]);
    chart.line([[px - 4, py - 4], [px + 4, py + 4]]);
    chart.line([[px - 4, py + 4], [px + 4, py - 4]]);
    chart.hits.push({ x: px, y: py, says: point.says });
  }
  if (points.length) chart.explain("×", PALETTE.ink, "measured");
}

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
  chart.axes(x, new Axis([0, 1], "", false));
  const y = new Axis([0, 1], "", false).between(chart.area.bottom, chart.area.top);
  chart.shown = { names: [...(by ? [roles.by] : []), roles.x, "share"], units: [...(by ? [by.unit] : []), xs.unit, ""], rows: [] };
  [...series.entries()].sort((a, b) => a[0] - b[0]).forEach(([value, times], at) => {
    times.sort((a, b) => a - b);
    const name = by ? by.text(value) : "all rows";
    times.forEach((t, k) => chart.shown.rows.push([...(by ? [name] : []), t, (k + 1) / times.length]));
    if (at < MOST_SERIES) drawSteps(chart, times, x, y, by ? by.place(value) : 0, name);
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
  x.between(chart.area.left, chart.area.right);
  y.between(chart.area.bottom, chart.area.top);
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
  if (by) order.slice(0, MOST_SERIES).forEach((v) => chart.explain(seriesGlyph(by.place(v)), seriesColour(by.place(v)), by.text(v)));
  chart.explain("■", "#b8b8b8", "within 10 %");
}

function scatterWords(chart, i) {
  const { table } = chart, of = (name) => table.column(name) && table.column(name).text(table.column(name).values[i]);
  const more = DATA.filters.filter(of).map((name) => `${name}: ${of(name)}`);
  return [`measured: ${of("measured_s")}`, `predicted: ${of("predicted_s")}`, `ratio: ${of("predicted_over_measured")}`, ...more].join("\n");
}
