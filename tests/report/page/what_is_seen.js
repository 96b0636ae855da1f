// What a page shows, for tests: texts, where they are, and how well they stand out from their ground.

function channels(colour) { return colour.match(/[\d.]+/g).map(Number); }

// Relative luminance and contrast of the Web Content Accessibility Guidelines 2.2.
function luminance([r, g, b]) {
  const [x, y, z] = [r, g, b].map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * x + 0.7152 * y + 0.0722 * z;
}

function contrast(one, other) {
  const [a, b] = [luminance(one), luminance(other)];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}

function parsed(colour) {
  const one = document.createElement("span");
  one.style.color = colour;
  document.body.append(one);
  const found = channels(getComputedStyle(one).color);
  one.remove();
  return found;
}

// Figure, text, box and contrast of all that canvases write; marks of curves are no text.
function written() {
  const found = [], pen = CanvasRenderingContext2D.prototype, kept = pen.fillText;
  for (const chart of CHARTS.filter((c) => !c.svg)) {
    pen.fillText = function (text, x, y) {
      const ratio = window.devicePixelRatio || 1, at = this.getTransform(), width = this.measureText(text).width;
      const left = x - width * { center: 0.5, right: 1, left: 0, start: 0 }[this.textAlign];
      const ends = [[left, y - 4.5], [left + width, y + 4.5]].map(([u, v]) => at.transformPoint({ x: u, y: v }));
      const xs = ends.map((c) => c.x / ratio), ys = ends.map((c) => c.y / ratio);
      const box = [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
      const middle = (box[1] + box[3]) / 2;
      const ground = this.getImageData(Math.max(0, box[0] * ratio), Math.max(0, middle * ratio), 1, 1).data;
      if (!GLYPHS.includes(text)) found.push([chart.figure.id, text, box, contrast(parsed(this.fillStyle), ground)]);
      kept.call(this, text, x, y);
    };
    chart.draw();
    pen.fillText = kept;
  }
  return found;
}

function groundOf(node) {
  for (let one = node; one; one = one.parentElement) {
    const found = channels(getComputedStyle(one).backgroundColor);
    if (found.length < 4 || found[3] > 0) return found;
  }
  return [255, 255, 255];
}

// Text and contrast of all that is not drawn.
function shown() {
  const out = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    const at = node.parentElement, hidden = at.closest("svg, .key span, [hidden], details:not([open]) > :not(summary)");
    const silent = ["SCRIPT", "NOSCRIPT", "OPTION"].includes(at.tagName) || !at.getClientRects().length;
    if (hidden || silent || !node.data.trim()) continue;
    out.push([node.data.trim(), contrast(channels(getComputedStyle(at).color), groundOf(at))]);
  }
  return out;
}

// What is wider than the window; what scrolls by itself may be.
function stickingOut() {
  const wide = document.documentElement.clientWidth, out = [];
  if (document.documentElement.scrollWidth > wide) out.push("the page");
  for (const one of document.querySelectorAll("body *")) {
    if (one.closest(".scroll, details div, svg, #tooltip") && !one.matches(".scroll")) continue;
    const box = one.getBoundingClientRect();
    if (box.width && (box.right > wide + 0.5 || box.left < -0.5)) out.push(`${one.tagName}#${one.id}.${one.className}`);
  }
  return out;
}

// Texts of each picture with their boxes.
function inPictures() {
  return CHARTS.filter((c) => c.svg).map((c) => [...c.svg.querySelectorAll("text")].map((text) => {
    const box = text.getBBox();
    return [text.textContent, box.x, box.y, box.x + box.width, box.y + box.height];
  }));
}
