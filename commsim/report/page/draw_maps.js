// Maps: a cell per value of x and y, coloured by a number or by which algorithm is fastest.

const CLOSE = 1.01, MANY_ROWS = 64;

function mixed(ramp, part) {
  const at = Math.max(0, Math.min(1, part)) * (ramp.length - 1), low = Math.min(Math.floor(at), ramp.length - 2);
  const channels = ramp[low].map((c, i) => Math.round(c + (at - low) * (ramp[low + 1][i] - c)));
  return `rgb(${channels.join()})`;
}

// The value that is shown of a column with a map each, and the box in which it is chosen.
function facetRows(chart) {
  const { table, roles } = chart;
  if (!roles.facet) return table.rows;
  const column = table.column(roles.facet), values = column.distinct(table.rows);
  if (!chart.facetBox) {
    chart.facetBox = element("select", {});
    chart.facetBox.addEventListener("change", () => { chart.facet = column.labels.indexOf(chart.facetBox.value); chart.draw(); });
    chart.controls.append(element("label", {}, `${chart.figure.words.facet} `, chart.facetBox));
  }
  if (!values.includes(chart.facet)) chart.facet = values.find((v) => !isBaseline(column.text(v))) ?? values[0];
  chart.facetBox.replaceChildren(...values.map((v) => element("option", { value: column.text(v), text: column.text(v) })));
  chart.facetBox.value = column.text(chart.facet);
  return table.rows.filter((i) => column.values[i] === chart.facet);
}

function isBaseline(name) { return DATA.baseline ? name === DATA.baseline : name.startsWith("ring"); }

// Lay out the cells of the values of two columns, write the axes; return the rectangle of a pair of values.
function cells(chart, rows) {
  const { table, roles, pen } = chart;
  const xs = table.column(roles.x), ys = table.column(roles.y);
  const across = xs.distinct(rows), up = ys.distinct(rows);
  const each = up.length > MANY_ROWS ? 7 : 15;  // of many rows some are named only
  const wanted = Math.max(120, Math.min(ys.labels ? up.length * each : 260, up.length * 44)) + 60;
  if (chart.height !== wanted) {
    chart.height = wanted;
    chart.draw();
    return null;
  }
  chart.area.left = Math.min(230, 0.45 * chart.area.right, 28 + Math.max(...up.map((v) => pen.measureText(ys.text(v)).width)));
  const { left, right, top, bottom } = chart.area;
  const width = (right - left) / across.length, height = (bottom - top) / up.length;
  const row = (i) => (ys.labels ? top + i * height : bottom - (i + 1) * height);
  const skip = Math.max(1, Math.ceil(13 / height));
  labelsAcross(chart, xs, across, width);
  up.forEach((v, i) => i % skip || chart.write(chart.shortened(ys.text(v), left - 22), left - 5, row(i) + height / 2, "right", PALETTE.faint));
  chart.titles();
  const xAt = new Map(across.map((v, i) => [v, i])), yAt = new Map(up.map((v, i) => [v, i]));
  return (xv, yv) => ({ x: left + xAt.get(xv) * width, y: row(yAt.get(yv)), w: width, h: height });
}

// Under the columns of cells: round numbers of a time, else as many of the values as there is room for.
function labelsAcross(chart, column, values, width) {
  const { left, right, bottom } = chart.area;
  if (column.unit === "s" && values.length > 20) {
    const x = new Axis([values[0], values.at(-1) + values[1] - values[0]], "s", false).between(left, right);
    const ticks = x.ticks(Math.max(2, Math.floor((right - left) / 90)));
    x.labels(ticks).forEach((text, i) => chart.under(text, x.at(ticks[i]), bottom + 13));
    return;
  }
  const skip = Math.max(1, Math.ceil(78 / width));
  values.forEach((v, i) => i % skip || chart.write(chart.shortened(column.text(v), width * skip), left + (i + 0.5) * width, bottom + 13, "center", PALETTE.faint));
}

function fillCell(chart, cell, colour, text, says, alpha = 1) {
  const { pen } = chart, gap = cell.w > 20 && cell.h > 6 ? 1 : 0;
  pen.globalAlpha = alpha;
  pen.fillStyle = colour;
  pen.fillRect(cell.x, cell.y, cell.w - gap + (gap ? 0 : 0.5), cell.h - gap);
  pen.globalAlpha = 1;
  if (text && cell.h > 12 && cell.w > pen.measureText("0.000").width + 2) {
    const dark = colour.match(/\d+/g)?.map(Number), light = dark && dark.length === 3 && dark[0] * 0.3 + dark[1] * 0.6 + dark[2] * 0.1 < 130;
    chart.write(text, cell.x + cell.w / 2, cell.y + cell.h / 2, "center", light ? "#ffffff" : "#222222");
  }
  chart.hits.push({ ...cell, says });
}

function drawHeat(chart) {
  const { roles, table, figure } = chart, rows = facetRows(chart);
  const keys = [...(roles.facet ? [roles.facet] : []), roles.y, roles.x];
  const place = cells(chart, rows.filter((i) => !Number.isNaN(table.column(roles.value).values[i])));
  if (!place) return;
  const all = summarised(table, table.rows, keys, roles.value), value = table.column(roles.value);
  const named = keys.map((k) => table.column(k));
  chart.shown = {
    names: [...keys, roles.value, `least_${roles.value}`, `greatest_${roles.value}`, "rows"],
    units: [...named.map((c) => c.unit), value.unit, value.unit, value.unit, ""],
    rows: all.map((g) => [...g.keys.map((v, i) => (named[i].labels ? named[i].text(v) : v)), g.median, g.low, g.high, g.n]),
  };
  const shown = roles.facet ? all.filter((g) => g.keys[0] === chart.facet) : all;
  const ratio = figure.scale === "ratio";
  const far = ratio ? all.reduce((most, g) => Math.max(most, g.median, 1 / g.median), 1) : 1;
  const most = ratio ? Math.log2(PALETTE.ends.find((end) => end >= far) || far) : 1;
  for (const g of shown) {
    const [yv, xv] = g.keys.slice(-2);
    const part = ratio ? 0.5 + Math.log2(g.median) / most / 2 : g.median;
    const colour = !ratio && g.median <= 0 ? PALETTE.idle : mixed(ratio ? PALETTE.ratio : PALETTE.load, part);
    const text = ratio ? `${Number(g.median.toPrecision(3))}` : "";
    fillCell(chart, place(xv, yv), colour, text, () => [
      ...(roles.facet ? [named[0].text(g.keys[0])] : []), `${figure.words.y}: ${table.column(roles.y).text(yv)}`,
      `${figure.words.x}: ${table.column(roles.x).text(xv)}`,
      `${figure.words.value}: ${ratio ? format(g.median, "") : `${(100 * g.median).toPrecision(3)} %`}`,
      ...(g.n > 1 ? [`median of ${g.n} rows`] : [])].join("\n"));
  }
  explainRamp(chart, ratio, most);
  if (!figure.run) noteMixed(chart, keys, "cell");
}

function explainRamp(chart, ratio, most) {
  const steps = ratio ? [-1, -0.5, 0, 0.5, 1] : [0, 0.25, 0.5, 0.75, 1];
  for (const s of steps) {
    const colour = ratio ? mixed(PALETTE.ratio, 0.5 + s / 2) : s ? mixed(PALETTE.load, s) : PALETTE.idle;
    chart.explain("■", colour, ratio ? `${Number((2 ** (s * most)).toPrecision(3))} ×` : `${100 * s} %`);
  }
}

function drawChoice(chart) {
  const { roles, table, figure } = chart, rows = facetRows(chart);
  const place = cells(chart, rows);
  if (!place) return;
  const keys = [...(roles.facet ? [roles.facet] : []), roles.y, roles.x], named = [...keys, roles.by].map((k) => table.column(k));
  const best = new Map();
  for (const g of summarised(table, table.rows, [...keys, roles.by], roles.value)) {
    const name = g.keys.slice(0, -1).join(), cell = best.get(name);
    if (!cell) best.set(name, { ...g, second: Infinity });
    else if (g.median < cell.median) best.set(name, { ...g, second: cell.median, runnerUp: cell.keys.at(-1) });
    else if (g.median < cell.second) Object.assign(cell, { second: g.median, runnerUp: g.keys.at(-1) });
  }
  const found = [...best.values()], value = table.column(roles.value), by = table.column(roles.by);
  chart.shown = {
    names: [...keys, roles.by, roles.value, `least_${roles.value}`, `greatest_${roles.value}`, "rows", "times_best_of_second"],
    units: [...named.map((c) => c.unit), value.unit, value.unit, value.unit, "", ""],
    rows: found.map((g) => [...g.keys.map((v, i) => (named[i].labels ? named[i].text(v) : v)), g.median, g.low, g.high, g.n,
      Number.isFinite(g.second) ? g.second / g.median : NaN]),
  };
  const shown = roles.facet ? found.filter((g) => g.keys[0] === chart.facet) : found;
  let near = false;
  for (const g of shown) {
    const [yv, xv] = g.keys.slice(keys.length - 2, keys.length), k = by.place(g.keys.at(-1));
    const close = g.second / g.median < CLOSE;
    near = near || close;
    fillCell(chart, place(xv, yv), seriesColour(k), "", () => [
      `${by.text(g.keys.at(-1))} is fastest`, `${figure.words.y}: ${table.column(roles.y).text(yv)}`,
      `${figure.words.x}: ${table.column(roles.x).text(xv)}`, `time: ${format(g.median, "s")}`,
      Number.isFinite(g.second) ? `${by.text(g.runnerUp)} takes ${(g.second / g.median).toPrecision(4)} times as long` : "no other ran",
      ...(g.n > 1 ? [`medians of ${g.n} rows`] : [])].join("\n"), close ? 0.45 : 1);
    const cell = place(xv, yv);
    if (cell.h > 12 && cell.w > 12) {
      chart.write(seriesGlyph(k), cell.x + cell.w / 2, cell.y + cell.h / 2, "center", close ? PALETTE.ink : PALETTE.paper);
    }
  }
  const winners = new Set(shown.map((g) => g.keys.at(-1)));
  for (const v of [...winners].sort((a, b) => a - b)) chart.explain(seriesGlyph(by.place(v)), seriesColour(by.place(v)), by.text(v));
  if (near) chart.explain("□", PALETTE.ink, "pale: another is within 1 %");
  noteMixed(chart, [...keys, roles.by], "cell");
}
