// Curves over an axis: medians between least and greatest, lines at given rates, and what was measured.

const LEAST_APART = 9;  // pixels between two marks of a line

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
  drawRules(chart, y, rules.map((value) => [value, `line rate ${format(value, y.unit)}`]));
  if (figure.level !== null) drawRules(chart, y, [[figure.level, figure.words.level]]);
  const series = groupSeries(found, Boolean(by));
  [...series.entries()].slice(0, MAX_SERIES).forEach(([value, groups]) => {
    const i = by ? by.place(value) : 0, name = by ? by.text(value) : figure.words.y;
    drawSeries(chart, groups, x, y, i, (g) => `${name}\n${figure.words.x}: ${xs.text(g.keys.at(-1))}\n${figure.words.y}: `
      + `${format(g.median, ys.unit)}` + (g.low < g.high ? ` (${format(g.low, ys.unit)} to ${format(g.high, ys.unit)})` : "")
      + (g.n > 1 ? `\nmedian of ${g.n} rows` : ""));
    chart.explain(seriesGlyph(i), seriesColour(i), name);
  });
  noteMore(chart, series.size);
  drawMeasured(chart, points, x, y);
  noteMixed(chart, keys, "point");
}

// Say which parameters vary among the rows that one point or cell sums up.
function noteMixed(chart, keys, what) {
  const { table } = chart, mixed = DATA.filters.filter((name) => {
    const column = table.column(name);
    return column && !keys.includes(name) && !(name.startsWith("collective") && keys.includes("collective")) && column.distinct(table.rows).length > 1;
  });
  if (!mixed.length || !table.rows.length) return;
  chart.remark.textContent = `Each ${what} is a median over all values of ${mixed.map(wordOf).join(", ")} that are shown: filter to tell them apart.`;
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
  if (n > MAX_SERIES) chart.explain("", PALETTE.ink, `and ${n - MAX_SERIES} more: use the filters, or another colour`);
}

function ruleValues(table, name) {
  const values = table.column(name).distinct(table.rows);
  return values.length <= 6 ? values : [values[0], values.at(-1)];
}

// Dashed lines with their names, as far as these do not cover each other.
function drawRules(chart, y, rules) {
  const { left, right, top } = chart.area;
  let free = Infinity;
  for (const [value, text] of [...rules].sort((a, b) => a[0] - b[0])) {
    const at = y.at(value), word = Math.max(at - 7, top + 5);
    chart.pen.strokeStyle = PALETTE.ink;
    chart.pen.lineWidth = 1.2;
    chart.line([[left, at], [right, at]], [6, 4]);
    chart.hits.push({ x: left, y: at - 3, w: right - left, h: 6, says: () => text });
    if (word + 13 > free) continue;
    chart.over(text, left + 6, word);
    free = word;
  }
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
  let marked = -Infinity;
  at.forEach(([px, py], k) => {
    if (px - marked >= LEAST_APART) { chart.write(seriesGlyph(i), px, py, "center", seriesColour(i)); marked = px; }
    chart.hits.push({ x: px, y: py, says: () => says(shown[k]) });
  });
}

function measuredPoints(chart, table) {
  const of = (name) => (table.column(name) ? table.column(name).values : null);
  const xs = of(chart.roles.x), ys = of(chart.roles.y), lows = of(chart.roles.low), highs = of(chart.roles.high);
  const source = table.column("source"), name = table.column("collective"), ranks = table.column("n_ranks");
  if (!xs || !ys) return [];
  return table.rows.filter((i) => Number.isFinite(ys[i])).map((i) => ({
    x: xs[i], y: ys[i], ranks: ranks ? ranks.values[i] : NaN, low: lows ? lows[i] : NaN, high: highs ? highs[i] : NaN,
    says: () => `measured: ${format(ys[i], table.column(chart.roles.y).unit)}\n${format(xs[i], table.column(chart.roles.x).unit)}`
      + `${ranks && ranks.values[i] > 0 ? ` on ${ranks.values[i]} ranks` : ""}`
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
  const ranks = [...new Set(points.map((point) => point.ranks).filter((n) => n > 0))].sort((a, b) => a - b);
  const on = ranks.length && ranks.length <= 4 ? ` on ${ranks.join(", ")} ranks` : "";
  if (points.length) chart.explain("×", PALETTE.ink, `measured${on}`);
}
