// The page of a cost model: four choices, a size, its answer, and two curves.
"use strict";

const byId = (id) => document.getElementById(id);
const WIDTH = 820, HEIGHT = 300, LEFT = 64, BOTTOM = 28, TOP = 8, RIGHT = 12, STEPS = 400;
const CHOICES = ["operation", "machines", "gpus", "faults"];
const UNITS = { "": 1, b: 1, k: 2 ** 10, kib: 2 ** 10, m: 2 ** 20, mib: 2 ** 20, g: 2 ** 30, gib: 2 ** 30,
  kb: 1e3, mb: 1e6, gb: 1e9 };
let model = null;

// Return bytes of a text such as 64MiB, 64M (as nccl-tests) or 64MB; NaN if it is no size.
function bytesOf(text) {
  const found = /^\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*$/i.exec(text);
  return found === null ? NaN : Number(found[1]) * (UNITS[found[2].toLowerCase()] ?? NaN);
}

function sizeText(size) {
  for (const [unit, name] of [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]]) {
    if (size >= unit) return `${+(size / unit).toPrecision(4)} ${name}`;
  }
  return `${+size.toPrecision(4)} B`;
}

function timeText(seconds) {
  for (const [unit, name] of [[1, "s"], [1e-3, "ms"], [1e-6, "us"]]) {
    if (seconds >= unit) return `${+(seconds / unit).toPrecision(4)} ${name}`;
  }
  return `${+(seconds * 1e9).toPrecision(4)} ns`;
}

function chosen() {
  return { operation: byId("operation").value, machines: Number(byId("machines").value),
    gpus: Number(byId("gpus").value), faults: byId("faults").value };
}

function answerOf(what, size, faults = what.faults) {
  return model.answer(what.operation, what.machines, what.gpus, size, faults);
}

// Offer the values that the file has beside the choices before each.
function offer() {
  let left = model.tree.curves;
  for (const key of CHOICES) {
    const select = byId(key);
    const before = select.value;
    const values = [...new Set(left.map((curve) => curve[key]))];
    const texts = values.map((value) => {
      const option = document.createElement("option");
      option.value = String(value);
      option.textContent = value === "" ? "none" : String(value);
      return option;
    });
    select.replaceChildren(...texts);
    const usual = key === "machines" || key === "gpus" ? values.at(-1) : values[0];
    const kept = values.some((value) => String(value) === before) ? before : String(usual);
    select.value = kept;
    left = left.filter((curve) => String(curve[key]) === kept);
  }
}

function svgPart(parent, name, attributes, text = "") {
  const part = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) part.setAttribute(key, value);
  part.textContent = text;
  parent.append(part);
  return part;
}

// Draw columns over the size: y of the curve and its interval, and of the network without faults where that is other.
function draw(svg, rows, whole, isLog, textOf, at) {
  const ys = [...rows.flatMap((row) => row.slice(1)), ...whole.map((row) => row[1])];
  const low = isLog ? Math.min(...ys) : 0, high = Math.max(...ys);
  const scale = isLog ? Math.log : (value) => value;
  const x = (size) => LEFT + (WIDTH - LEFT - RIGHT) * Math.log(size / rows[0][0]) / Math.log(rows.at(-1)[0] / rows[0][0]);
  const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (scale(high) - scale(value)) / (scale(high) - scale(low) || 1);
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  for (let k = 0; k < 5; k++) {
    const value = isLog ? low * (high / low) ** (k / 4) : high * k / 4;
    svgPart(svg, "line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) });
    svgPart(svg, "text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, textOf(value));
  }
  for (let size = 2 ** 6; size <= rows.at(-1)[0]; size *= 2 ** 6) {
    svgPart(svg, "line", { class: "grid", x1: x(size), x2: x(size), y1: TOP, y2: HEIGHT - BOTTOM });
    svgPart(svg, "text", { x: x(size), y: HEIGHT - 8, "text-anchor": "middle" }, sizeText(size));
  }
  const path = (points) => points.map(([size, value]) => `${x(size).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
  const band = [...rows.map((row) => [row[0], row[2]]), ...rows.map((row) => [row[0], row[3]]).reverse()];
  svgPart(svg, "polygon", { class: "band", points: path(band) });
  if (whole.length) svgPart(svg, "polyline", { class: "whole", points: path(whole) });
  svgPart(svg, "polyline", { class: "line", points: path(rows) });
  if (at !== null) svgPart(svg, "circle", { class: "at", cx: x(at[0]), cy: y(at[1]), r: 4 });
}

// Sizes of a chart: spread over the logarithm, and those of the file, so that jumps stand where they are.
function sizesOf(curve) {
  const least = curve.size[0], ratio = model.largest / least;
  const spread = Array.from({ length: STEPS + 1 }, (_, k) => least * ratio ** (k / STEPS));
  return [...new Set([...spread, ...curve.size])].filter((size) => size <= model.largest).sort((a, b) => a - b);
}

function show() {
  const what = chosen();
  const curve = model.curve(what.operation, what.machines, what.gpus, what.faults);
  const busbw = (size, time) => size / time * curve.busbw_factor / 1e9;
  const rows = sizesOf(curve).map((size) => [size, ...answerOf(what, size)]);
  let whole = [];
  if (what.faults !== "" && model.tree.faults.includes("")) whole = rows.map(([size]) => [size, answerOf(what, size, "")[0]]);
  const size = bytesOf(byId("size").value);
  const isSize = size >= 0 && size <= model.largest;
  const times = isSize ? answerOf(what, size) : null;
  const at = isSize ? Math.max(size, curve.size[0]) : null;
  byId("answer").textContent = isSize ? said(what, size, times, busbw(size, times[0]), whole.length > 0)
    : `a size is 64MiB or 64MB, up to ${sizeText(model.largest)}`;
  draw(byId("time"), rows, whole, true, timeText, isSize ? [at, times[0]] : null);
  const rates = rows.map(([s, time, low, high]) => [s, busbw(s, time), busbw(s, high), busbw(s, low)]);
  draw(byId("busbw"), rates, whole.map(([s, time]) => [s, busbw(s, time)]), false,
    (rate) => `${+rate.toPrecision(3)} GB/s`, isSize ? [at, busbw(at, times[0])] : null);
  document.body.dataset.shown = String(Number(document.body.dataset.shown || 0) + 1);
}

function said(what, size, [time, low, high], rate, hasWhole) {
  const choice = model.choice(what.operation, what.machines, what.gpus, size, what.faults);
  const parts = [timeText(time), low < high ? `${timeText(low)} to ${timeText(high)}` : "interval unknown",
    `${+rate.toPrecision(4)} GB/s bus bandwidth`];
  if (choice !== "") parts.push(choice);
  if (hasWhole) parts.push(`${(time / answerOf(what, size, "")[0]).toPrecision(3)} times the time without faults`);
  return `${sizeText(size)}: ${parts.join("; ")}`;
}

function load(text) {
  byId("error").textContent = "";
  try {
    model = new CostModel(JSON.parse(text));
    offer();
  } catch (error) {
    model = null;
    byId("main").hidden = true;
    byId("error").textContent = `this is no cost model: ${error.message}`;
    return;
  }
  const tree = model.tree, made = tree.certificate;
  byId("network").textContent = [tree.network, tree.release, `commsim ${tree.commsim}`].filter(Boolean).join("; ");
  const lines = [`largest error of the file at ${made.points} random sizes: ${(made.largest_error * 100).toPrecision(2)} %`,
    `routing: ${tree.routing}; ranks on ${tree.placement}`, ...tree.sources];
  byId("sources").replaceChildren(...lines.map((line) => {
    const item = document.createElement("li");
    item.textContent = line;
    return item;
  }));
  byId("main").hidden = false;
  show();
}

byId("file").addEventListener("change", async (event) => {
  if (event.target.files.length) load(await event.target.files[0].text());
});
for (const event of ["input", "change"]) byId("form").addEventListener(event, () => { offer(); show(); });
byId("form").addEventListener("submit", (event) => event.preventDefault());
if (byId("model").textContent.trim()) load(byId("model").textContent);
