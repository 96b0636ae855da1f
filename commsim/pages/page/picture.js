// A picture of a network: made smaller to fit while it can be read, else at its own size, to be scrolled.

const LEAST_FIT = 0.6, MOST_SHOWN = 2000;  // pixels

function pictureOf(chart) {
  const parsed = new DOMParser().parseFromString(chart.figure.picture, "image/svg+xml").documentElement;
  const svg = document.importNode(parsed, true), scroll = element("div", { className: "scroll", tabIndex: 0 }, svg);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", chart.figure.title);
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", `${chart.figure.title} ${chart.figure.run}`);
  for (const title of svg.querySelectorAll("title")) {  // our tooltip in place of the browser's
    if (title.parentNode === svg) continue;
    title.parentNode.dataset.tip = title.textContent;
    title.remove();
  }
  svg.addEventListener("mousemove", (event) => tooltip(event.clientX, event.clientY, event.target.dataset.tip));
  svg.addEventListener("mouseleave", () => tooltip());
  chart.own = Math.min(MOST_SHOWN, parseFloat(svg.getAttribute("viewBox").split(" ")[2]));
  chart.svg = svg;
  const box = element("input", { type: "checkbox" });
  box.addEventListener("change", () => { chart.fitted = box.checked; fitPicture(chart); });
  chart.fitBox = box;
  chart.controls.append(element("label", {}, box, " fit to the width"));
  return scroll;
}

function fitPicture(chart) {
  const room = chart.svg.parentNode.clientWidth, scale = room / chart.own;
  const fits = chart.fitted ?? scale >= LEAST_FIT;
  chart.fitBox.parentNode.hidden = scale >= 1;
  chart.fitBox.checked = fits;
  chart.svg.style.width = fits && scale < 1 ? "100%" : `${chart.own}px`;
  chart.svg.style.height = "auto";
}
