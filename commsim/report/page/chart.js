// A card with one figure: canvas, controls, key, caption, the numbers as a table, and what a mouse or the arrow keys show.

const GLYPHS = ["●", "■", "▲", "◆", "▼", "✚"];
const MAX_SERIES = 14;

class Chart {
  constructor(figure) {
    this.figure = figure;
    this.roles = { ...figure.roles };
    this.table = TABLES[figure.table];
    this.hits = [];
    this.shown = { names: [], units: [], rows: [] };
    this.canvas = element("canvas", { tabIndex: 0 });
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", `${figure.title}. ${figure.caption}`);
    this.controls = element("div", { className: "controls" });
    this.key = element("ul", { className: "key" });
    const title = element("h2", { text: figure.title });
    if (figure.run) title.append(element("small", { text: ` ${figure.run}` }));
    this.remark = element("p", { className: "remark" });
    const wide = ["spans", "picture"].includes(figure.kind) || ["links", "racks", "tiers", "fullest", "ways"].includes(figure.name);
    this.card = element("figure", { className: wide ? "card wide" : "card", id: `figure-${figure.id}` }, title, this.controls);
    this.card.append(this.body(), this.key, this.remark, element("figcaption", { text: figure.caption }), numbersOf(this));
    if (["curves", "cdf", "scatter"].includes(figure.kind) && !figure.run) this.chooser();
    this.listen();
  }

  body() {
    return this.figure.kind === "picture" ? pictureOf(this) : element("div", { className: "scroll" }, this.canvas);
  }

  // Which column has a colour per value.
  chooser() {
    const names = DATA.filters.filter((name) => this.table.column(name) && name !== this.roles.x);
    if (names.length < (this.roles.by ? 2 : 1)) return;
    const box = element("select", {}, ...["", ...names].map((name) => element("option", { value: name, text: wordOf(name) || "nothing" })));
    box.value = this.roles.by || "";
    box.addEventListener("change", () => { this.roles.by = box.value || undefined; this.draw(); });
    this.controls.append(element("label", {}, "colour by ", box));
  }

  listen() {
    this.canvas.addEventListener("mousemove", (event) => this.point(event));
    this.canvas.addEventListener("mouseleave", () => tooltip());
    this.canvas.addEventListener("blur", () => tooltip());
    this.canvas.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!by || !this.hits.length) return;
      this.held = ((this.held ?? (by > 0 ? -1 : 0)) + by + this.hits.length) % this.hits.length;
      const hit = this.hits[this.held], box = this.canvas.getBoundingClientRect();
      tooltip(box.left + hit.x + (hit.w || 0) / 2, box.top + hit.y + (hit.h || 0) / 2, this.wordsAt(hit));
      event.preventDefault();
    });
  }

  // Show what is under the mouse: the last rectangle drawn there, or the nearest mark and those that it hides.
  point(event) {
    const box = this.canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    let best = null, nearest = 14 ** 2;
    for (const hit of this.hits) {
      if (hit.w !== undefined) {
        if (x >= hit.x && x <= hit.x + Math.max(hit.w, 2) && y >= hit.y && y <= hit.y + hit.h) best = hit;
        continue;
      }
      const distance = (hit.x - x) ** 2 + (hit.y - y) ** 2;
      if (distance < nearest) { nearest = distance; best = hit; }
    }
    tooltip(event.clientX, event.clientY, best ? this.wordsAt(best) : undefined);
  }

  wordsAt(best) {
    if (best.w !== undefined) return best.says();
    const there = this.hits.filter((hit) => hit.w === undefined && Math.abs(hit.x - best.x) < 3 && Math.abs(hit.y - best.y) < 3);
    const all = [...new Set(there.map((hit) => hit.says()))];
    return all.slice(0, 4).join("\n\n") + (all.length > 4 ? `\n\nand ${all.length - 4} more` : "");
  }

  draw() {
    this.hits = [];
    this.held = undefined;
    this.key.replaceChildren();
    this.remark.textContent = "";
    if (this.figure.kind === "picture") {
      showRows(this);
      fitPicture(this);
      this.filled();
      return;
    }
    const ratio = window.devicePixelRatio || 1, width = this.canvas.clientWidth;
    if (this.height) this.canvas.style.height = `${this.height}px`;
    const height = this.canvas.clientHeight;
    this.canvas.width = width * ratio;
    this.canvas.height = height * ratio;
    const pen = this.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.fillStyle = PALETTE.paper;
    pen.fillRect(0, 0, width, height);
    pen.font = "11px DejaVu Sans, Verdana, sans-serif";
    this.pen = pen;
    this.area = { left: 70, right: width - 18, top: 12, bottom: height - 42 };
    if (this.table.rows.length) DRAW[this.figure.kind](this);
    else { this.shown.rows = []; this.write("no row passes the filters", width / 2, height / 2, "center"); }
    this.filled();
  }

  write(text, x, y, align = "left", colour = PALETTE.ink, baseline = "middle") {
    Object.assign(this.pen, { fillStyle: colour, textAlign: align, textBaseline: baseline });
    this.pen.fillText(text, x, y);
  }

  shortened(text, width) {
    if (this.pen.measureText(text).width <= width) return text;
    let n = text.length;
    while (n > 1 && this.pen.measureText(`${text.slice(0, n)}…`).width > width) n -= 1;
    return `${text.slice(0, n)}…`;
  }

  // Put both axes where they belong, with room for what is written beside them.
  fit(x, y) {
    this.area.left = 28 + Math.max(...y.labels().map((text) => this.pen.measureText(text).width));
    x.between(this.area.left, this.area.right);
    y.between(this.area.bottom, this.area.top);
  }

  axes(x, y) {
    this.fit(x, y);
    const { left, right, top, bottom } = this.area, pen = this.pen;
    pen.lineWidth = 1;
    pen.strokeStyle = PALETTE.grid;
    const across = x.ticks(Math.max(2, Math.floor((right - left) / 75))), up = y.ticks();
    for (const tick of across) this.line([[x.at(tick), top], [x.at(tick), bottom]]);
    for (const tick of up) this.line([[left, y.at(tick)], [right, y.at(tick)]]);
    x.labels(across).forEach((text, i) => this.under(text, x.at(across[i]), bottom + 13));
    y.labels(up).forEach((text, i) => this.write(text, left - 6, y.at(up[i]), "right", PALETTE.faint));
    pen.strokeStyle = PALETTE.ink;
    this.line([[left, top], [left, bottom], [right, bottom]]);
    this.titles();
  }

  // A number at an axis, moved so that none of it is cut off.
  under(text, x, y) {
    const half = this.pen.measureText(text).width / 2;
    this.write(text, Math.min(Math.max(x, half), this.canvas.clientWidth - half), y, "center", PALETTE.faint);
  }

  // Text over lines, with a white edge.
  over(text, x, y) {
    Object.assign(this.pen, { strokeStyle: PALETTE.paper, lineWidth: 3, lineJoin: "round", textAlign: "left", textBaseline: "middle" });
    this.pen.strokeText(text, x, y);
    this.write(text, x, y);
  }

  titles() {
    const { left, right, top, bottom } = this.area;
    this.write(this.figure.words.x, (left + right) / 2, bottom + 31, "center");
    this.pen.save();
    this.pen.translate(9, (top + bottom) / 2);
    this.pen.rotate(-Math.PI / 2);
    this.write(this.figure.words.y, 0, 0, "center");
    this.pen.restore();
  }

  line(points, dash = []) {
    this.pen.setLineDash(dash);
    this.pen.beginPath();
    points.forEach(([x, y], i) => (i ? this.pen.lineTo(x, y) : this.pen.moveTo(x, y)));
    this.pen.stroke();
    this.pen.setLineDash([]);
  }

  explain(glyph, colour, text) {
    const mark = element("span", { text: glyph, className: glyph === "■" ? "swatch" : "" });
    mark.style.color = colour;
    this.key.append(element("li", {}, mark, ` ${text}`));
  }
}

function seriesColour(i) { return PALETTE.series[i % PALETTE.series.length]; }
function seriesGlyph(i) { return GLYPHS[i % GLYPHS.length]; }

function tooltip(x, y, text) {
  const box = document.getElementById("tooltip");
  box.hidden = !text;
  if (!text) return;
  box.textContent = text;
  box.style.left = `${Math.max(4, Math.min(x + 14, window.innerWidth - box.offsetWidth - 8))}px`;
  box.style.top = `${Math.max(4, Math.min(y + 14, window.innerHeight - box.offsetHeight - 8))}px`;
}
