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

// All items of a kind of mark in a figure, with their boxes on the canvas.
function items(chart, kind) {
  const found = [], pad = chart.view.padding();
  const go = (mark, x, y) => {
    for (const item of mark.items) {
      if (mark.marktype === "group") for (const inside of item.items || []) go(inside, x + (item.x || 0), y + (item.y || 0));
      else if (mark.marktype === kind) {
        const b = item.bounds;
        found.push({ name: mark.name || "", role: mark.role, item, box: [x + b.x1, y + b.y1, x + b.x2, y + b.y2] });
      }
    }
  };
  const [x, y] = chart.view.origin();
  go(chart.view.scenegraph().root, x + pad.left, y + pad.top);
  return found;
}

// Figure, text, box and contrast of all that is written beside the data of figures.
function written() {
  return CHARTS.filter((c) => c.view).flatMap((chart) => items(chart, "text")
    .filter(({ item, role }) => role !== "mark" && item.text && item.opacity !== 0)
    .map(({ item, box }) => [chart.figure.id, String(item.text), box, contrast(parsed(item.fill), parsed(chart.view.background()))]));
}

// Texts of figures of which a part is outside of the canvas.
function cut() {
  return CHARTS.filter((c) => c.view).flatMap((chart) => {
    const { width, height } = chart.place.querySelector("canvas").getBoundingClientRect();
    return items(chart, "text").filter(({ item, box }) => item.text && item.opacity !== 0
      && (box[0] < -1 || box[1] < -1 || box[2] > width + 1 || box[3] > height + 1)).map(({ item, box }) => [chart.figure.id, item.text, box, width, height]);
  });
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
    const at = node.parentElement, hidden = at.closest("svg, [hidden], details:not([open]) > :not(summary)");
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
