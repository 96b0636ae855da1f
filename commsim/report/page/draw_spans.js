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
  chart.area.left = Math.min(190, 16 + Math.max(...lanes.map((v) => pen.measureText(lane.text(v)).width)));
  const { left, right, top, bottom } = chart.area;
  const x = new Axis(chart.view || [0, ...end], "s", false).between(left, right);
  chart.time = x;
  pen.strokeStyle = PALETTE.grid;
  for (const tick of x.ticks(Math.max(2, Math.floor((right - left) / 90)))) {
    chart.line([[x.at(tick), top], [x.at(tick), bottom]]);
    chart.write(format(tick, "s"), x.at(tick), bottom + 11, "center", PALETTE.faint);
    chart.write(format(tick, "s"), x.at(tick), top - 9, "center", PALETTE.faint);
  }
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
  pen.lineWidth = 2;
  pen.strokeStyle = "#000000";
  for (const bar of outlined) pen.strokeRect(bar.x, bar.y, Math.max(1.5, bar.w - 1), bar.h);
  pen.restore();
  for (const [name, colour] of Object.entries(PALETTE.effects)) chart.explain("■", colour, name);
  if (outlined.length) chart.explain("□", "#000000", "on the critical path");
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
  let from = null;
  chart.canvas.addEventListener("mousedown", (event) => { from = event.offsetX; });
  chart.canvas.addEventListener("mouseup", (event) => {
    if (from !== null && Math.abs(event.offsetX - from) > 5) {
      const [low, high] = [from, event.offsetX].sort((a, b) => a - b).map((p) => chart.time.value(p));
      view(Math.max(all.low, low), Math.min(all.high, high));
    }
    from = null;
  });
  chart.canvas.addEventListener("dblclick", () => view(all.low, all.high));
}
