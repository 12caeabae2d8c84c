// Runs in a card and sends what it found to the page around it.
const checks = [];
const check = (name, ok, detail = "") => checks.push({ name, ok: Boolean(ok), detail: String(detail) });
const all = (selector, from = document) => [...from.querySelectorAll(selector)];
const wide = document.documentElement.clientWidth;

const light = (colour) => {
  const part = (c) => (c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);
  const [r, g, b] = colour.match(/[\d.]+/g).map(Number);
  return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
};
const ground = (node) => {
  for (; node; node = node.parentElement) {
    const colour = getComputedStyle(node).backgroundColor;
    if (!/, 0\)$/.test(colour) && colour !== "transparent") return colour;
  }
  return "rgb(255, 255, 255)";
};
const contrast = (node) => {
  const style = getComputedStyle(node);
  const [a, b] = [light(node.closest("svg") ? style.fill : style.color), light(ground(node))].sort((x, y) => y - x);
  return (a + 0.05) / (b + 0.05);
};

check("a verdict", document.querySelector(".verdict h2")?.textContent.length > 5);
check("sections with headings", all("section").length >= 4 && all("section").every((s) => s.querySelector("h2")?.textContent));
check("the contents lead somewhere", all("nav a").every((a) => document.getElementById(a.getAttribute("href").slice(1))));
check("the page is no wider than its window", document.documentElement.scrollWidth <= wide, document.documentElement.scrollWidth);
check("no coordinate is broken", !all("svg *").some((node) => /NaN|Infinity|inf%/.test(node.outerHTML)));
check("every chart has something in it", all("svg").every((svg) => svg.childElementCount > 0 || svg.closest(".track")));
check("pictures are hidden from screen readers or named", all("svg").every((svg) => svg.closest("[aria-hidden], [role=img]")));
check("tables have captions and headings", all("table").every((t) => t.caption && t.querySelector("th[scope=row], tbody:empty")));
const cut = all("svg text").filter((text) => {
  const box = text.getBoundingClientRect();
  return box.width > 0 && (box.left < -1 || box.right > wide + 1);
});
check("no label leaves the page", cut.length === 0, cut.map((text) => text.textContent));
const faint = all("h1, h2, p, dt, dd, li, th, td, small, summary, b, svg text").filter((node) => contrast(node) < 4.5);
check("all text can be read", faint.length === 0, faint.slice(0, 5).map((n) => `${n.tagName} ${n.textContent.slice(0, 20)} ${contrast(n).toFixed(2)}`));
for (const svg of all(".rows tr.foot svg, .plot svg")) {
  const boxes = all("text", svg).map((text) => text.getBoundingClientRect()).filter((box) => box.width > 0);
  const over = boxes.some((a, i) => boxes.some((b, j) => i < j && a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 2 && b.top < a.bottom - 2));
  check("no labels over each other", !over, svg.textContent);
}
const dark = matchMedia("(prefers-color-scheme: dark)").matches;
check("the page follows the scheme", light(getComputedStyle(document.body).backgroundColor) < 0.2 === dark, dark);
check("nobody ran what the log says", window.alerted === undefined);

parent.postMessage(JSON.stringify({
  checks, errors: window.seen, width: wide, dark,
  requests: performance.getEntriesByType("resource").map((entry) => entry.name),
}), "*");
