// Timelines: a lane per rank or link, a bar per message; a stretch of time is chosen by dragging over it.

function drawSpans(chart) {
  const { roles, table, pen } = chart, column = (role) => table.column(roles[role]);
  const lane = column("y"), level = column("level").values, start = column("x").values, end = column("end").values;
  const lanes = lane.distinct(table.rows), depth = new Map(lanes.map((v) => [v, 1]));
  for (const i of table.rows) depth.set(lane.values[i], Math.max(depth.get(lane.values[i]), level[i] + 1));
  const wanted = Math.max(160, lanes.reduce((sum, v) => sum + Math.max(15, 7 * Math.min(depth.get(v), 8)), 0) + 70);
  chart.area.top = 20;
  if (chart.height !== wanted) { chart.height = wanted; chart.draw(); return; }
  if (!chart.view) zoomControls(chart);
  showRows(chart);
  chart.area.left = Math.min(230, 0.45 * chart.area.right, 16 + Math.max(...lanes.map((v) => pen.measureText(lane.text(v)).width)));
  const { left, right, top, bottom } = chart.area;
  const x = new Axis(chart.view || [0, ...end], "s", false).between(left, right);
  chart.time = x;
  pen.strokeStyle = PALETTE.grid;
  const ticks = x.ticks(Math.max(2, Math.floor((right - left) / 90)));
  x.labels(ticks).forEach((text, i) => {
    chart.line([[x.at(ticks[i]), top], [x.at(ticks[i]), bottom]]);
    chart.under(text, x.at(ticks[i]), bottom + 11);
    chart.under(text, x.at(ticks[i]), top - 9);
  });
  chart.write(chart.figure.words.x, (left + right) / 2, bottom + 28, "center");
  const rows = layOut(chart, lanes, depth, lane);
  pen.save();
  pen.beginPath();
  pen.rect(left, top - 1, right - left, bottom - top + 2);
  pen.clip();
  const by = column("by"), mark = column("mark").values, outlined = [];
  for (const i of table.rows) {
    if (end[i] < x.low || start[i] > x.high) continue;
    const from = x.at(start[i]), room = rows.get(lane.values[i]), height = room.height / depth.get(lane.values[i]);
    const bar = { x: from, y: room.top + level[i] * height, w: Math.max(0.6, x.at(end[i]) - from), h: height - (height > 4 ? 1 : 0) };
    pen.fillStyle = PALETTE.effects[by.labels[by.values[i]]];
    pen.globalAlpha = chart.fade && !mark[i] ? 0.3 : 0.75;
    pen.fillRect(bar.x, bar.y, bar.w - (bar.w > 3 ? 0.6 : 0), bar.h);
    if (mark[i]) outlined.push(bar);
    chart.hits.push({ ...bar, says: () => spanWords(chart, i) });
  }
  pen.globalAlpha = 1;
  const near = (a, b) => a && b && a.y === b.y && Math.abs(b.x - a.x - a.w) < 4;
  outlined.forEach((bar, k) => outline(pen, bar, near(outlined[k - 1], bar) || near(bar, outlined[k + 1])));
  pen.restore();
  const effects = new Set(table.rows.map((i) => by.labels[by.values[i]]));
  for (const [name, colour] of Object.entries(PALETTE.effects)) if (effects.has(name)) chart.explain("■", colour, name);
  if (outlined.length) chart.explain("□", PALETTE.outline, "on the critical path");
}

// An edge; of a row of bars so narrow that it would hide their colour, above and below only.
function outline(pen, bar, inRow) {
  const narrow = inRow && bar.w < 7, edge = bar.h < 10 ? 1 : 2;
  pen.strokeStyle = pen.fillStyle = PALETTE.outline;
  pen.lineWidth = edge;
  if (!narrow) pen.strokeRect(bar.x + edge / 2, bar.y + edge / 2, Math.max(bar.w - edge, 0.5), bar.h - edge);
  else for (const y of [bar.y, bar.y + bar.h - edge]) pen.fillRect(bar.x, y, Math.max(1.5, bar.w), edge);
}

function layOut(chart, lanes, depth, lane) {
  const { top, bottom, left, right } = chart.area, rows = new Map();
  const sizes = lanes.map((v) => Math.max(15, 7 * Math.min(depth.get(v), 8)));
  const scale = (bottom - top) / sizes.reduce((a, b) => a + b, 0);
  let at = top;
  lanes.forEach((v, i) => {
    const height = sizes[i] * scale;
    if (i % 2) { chart.pen.fillStyle = PALETTE.lane; chart.pen.fillRect(left, at, right - left, height); }
    rows.set(v, { top: at + 1, height: height - 2 });
    chart.write(chart.shortened(lane.text(v), left - 10), left - 5, at + height / 2, "right");
    at += height;
  });
  return rows;
}

function spanWords(chart, i) {
  const of = (name) => chart.table.column(name).text(chart.table.column(name).values[i]);
  const value = (name) => chart.table.column(name).values[i], last = value("first_chunk") + value("chunks") - 1;
  const chunks = value("chunks") > 1 ? `chunks ${value("first_chunk")} to ${last}` : `chunk ${value("first_chunk")}`;
  return [`${of("lane")}: ${chunks} from ${value("from_rank")} to ${value("to_rank")}`, `${of("message_B")}, ${of("effect")}`,
    `${of("start_s")} to ${of("end_s")}, ${format(value("end_s") - value("start_s"), "s")}`,
    ...(value("critical") ? ["on the critical path"] : [])].join("\n");
}

function zoomControls(chart) {
  const all = new Axis([0, ...chart.table.column(chart.roles.end).values], "s", false);
  chart.view = [all.low, all.high];
  const zoom = (factor) => {
    const [low, high] = chart.view, middle = (low + high) / 2, half = (high - low) * factor / 2;
    view(Math.max(all.low, middle - half), Math.min(all.high, middle + half));
  };
  const view = (low, high) => { if (high > low) { chart.view = [low, high]; chart.draw(); } };
  const button = (text, label, action) => {
    const made = element("button", { type: "button", text, title: label, ariaLabel: label });
    made.addEventListener("click", action);
    return made;
  };
  const move = (by) => {
    const [low, high] = chart.view, step = Math.max(all.low - low, Math.min(all.high - high, by * (high - low) / 2));
    view(low + step, high + step);
  };
  const fade = element("input", { type: "checkbox" });
  fade.addEventListener("change", () => { chart.fade = fade.checked; chart.draw(); });
  chart.controls.append(button("+", "zoom in", () => zoom(0.5)), button("−", "zoom out", () => zoom(2)), button("◀", "earlier", () => move(-1)),
    button("▶", "later", () => move(1)), button("all", "the whole time", () => view(all.low, all.high)),
    element("label", {}, fade, " fade what is not critical"), "drag over the lanes to zoom");
  dragging(chart, (low, high) => view(Math.max(all.low, low), Math.min(all.high, high)));
  chart.canvas.addEventListener("dblclick", () => view(all.low, all.high));
}

// While the mouse is dragged a band shows what will be chosen.
function dragging(chart, chosen) {
  const band = element("div", { className: "band", hidden: true });
  chart.canvas.parentNode.append(band);
  let from = null;
  const within = (x) => Math.min(Math.max(x, chart.area.left), chart.area.right);
  chart.canvas.addEventListener("mousedown", (event) => { from = within(event.offsetX); event.preventDefault(); chart.canvas.focus(); });
  chart.canvas.addEventListener("mousemove", (event) => {
    const to = within(event.offsetX);
    band.hidden = from === null || !(event.buttons & 1) || Math.abs(to - from) <= 5;
    if (band.hidden) return;
    band.style.left = `${Math.min(from, to)}px`;
    band.style.width = `${Math.abs(to - from)}px`;
    band.style.top = `${chart.area.top}px`;
    band.style.height = `${chart.area.bottom - chart.area.top}px`;
  });
  chart.canvas.addEventListener("mouseup", (event) => {
    band.hidden = true;
    const to = within(event.offsetX);
    if (from !== null && Math.abs(to - from) > 5) chosen(...[from, to].sort((a, b) => a - b).map((p) => chart.time.value(p)));
    from = null;
  });
}
