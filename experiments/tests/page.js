// Runs in the page after its own script and sends what it found to the page around it.
const checks = [];
const check = (name, ok, detail = "") => checks.push({ name, ok: Boolean(ok), detail: String(detail) });
const all = (selector, from = document) => [...from.querySelectorAll(selector)];
const form = document.getElementById("controls").elements;
const lines = (panel) => all(".lines .line:not(.thin)", panel).length;
const press = (id) => document.querySelector(`#legend [data-line=${id}]`).click();
const set = (name, value) => {
  form[name].value = value;
  document.getElementById("controls").dispatchEvent(new Event("change", { bubbles: true }));
};
const drawn = (panel, id) => panel.querySelector(`.lines [data-line=${id}] .line`) !== null;

const panels = all(".panel"), [first] = panels, byMode = all("#fig4 .panel")[0];
const plot = first.querySelector(".plot"), tip = first.querySelector(".tip");
const key = (name) => plot.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
// The value of a line at the last n, as the reader sees it. (Its place would move with the axis.)
const value = (name) => {
  key("End");
  const row = all("tbody tr", tip).find((row) => row.cells[0].textContent === name);
  key("Escape");
  return row?.cells[1].textContent;
};
check("nine panels", panels.length === 9, panels.length);
check("ten lines in a panel", panels.slice(0, 7).every((panel) => lines(panel) === 10), panels.map(lines));
check("seven bands", all(".bands .band", first).length === 7, all(".bands .band", first).length);
check("S and B of both networks and the references by mode", lines(byMode) === 8, lines(byMode));
check("a key with the modes", all("#fig4 .key li").some((item) => item.textContent === "NeuraLCB B"));
check("the headline is log-only", form.choice.value === "log-only" && document.querySelector(".note").textContent.includes("log alone"));
check("no coordinate is broken", !all(".plot [d], .plot [cx]").some((node) => /NaN|Infinity|undefined/.test(node.outerHTML)));
check("the controls are shown", document.getElementById("controls").offsetHeight > 0);

press("uniform");
check("a press removes the line everywhere", panels.every((panel) => !drawn(panel, "uniform")) && lines(first) === 9);
check("the button says so", document.querySelector("#legend [data-line=uniform]").getAttribute("aria-pressed") === "false");
check("the address keeps it", location.hash === "#off=uniform", location.hash);
press("uniform");
check("a second press brings it back", lines(first) === 10 && location.hash === "", location.hash);

const honest = value("NeuraLCB");
set("choice", "oracle");
check("the oracle draws another curve", value("NeuraLCB") && value("NeuraLCB") !== honest, value("NeuraLCB"));
check("the caption says that it looks at the truth", document.querySelector(".note").textContent.includes("looks at the truth"));
const oracle = value("NeuraLCB");
set("choice", "log-only");
check("and back", value("NeuraLCB") === honest);
form.beside.click();
check("the oracle beside is a thin line more for what was chosen", all(".lines .thin", first).length === 5, all(".lines .thin", first).length);
form.beside.click();
check("it goes again", all(".lines .thin").length === 0);

set("choice", "by-hand");
check("by hand shows its lists", document.getElementById("hand").offsetHeight > 0 && form.beta.options.length === 6);
set("mode", "B");
set("learning_rate", "0.001");
set("beta", "0.1");
check("the best setting by hand is the oracle's curve", value("NeuraLCB") === oracle, `${value("NeuraLCB")}, oracle ${oracle}`);
const sigma = value("KernLCB");
set("sigma", "10");
check("σ moves the kernel and nothing else", value("KernLCB") !== sigma && value("NeuraLCB") === oracle);
check("by hand, both modes remain by mode", lines(byMode) === 8);
set("choice", "log-only");

const box = plot.getBoundingClientRect();
const move = (share) => plot.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + share * box.width, clientY: box.top + 50, bubbles: true, pointerType: "mouse" }));
check("nothing is read at first", tip.hidden);
move(0.99);
const values = all("tbody tr", tip).map((row) => parseFloat(row.cells[1].textContent));
check("pointing reads the last n", !tip.hidden && tip.querySelector("caption").textContent === "n = 10,000", tip.textContent);
check("ten values, best first", values.length === 10 && values.every((v, i) => i === 0 || values[i - 1] <= v), values);
check("with interval and setting", /±/.test(tip.textContent) && /lr 0\.001/.test(tip.textContent), tip.textContent);
check("the tip stays in the chart", tip.getBoundingClientRect().right <= plot.getBoundingClientRect().right + 1);
move(0.0);
check("and the first", tip.querySelector("caption").textContent === "n = 10");
plot.dispatchEvent(new PointerEvent("pointerleave", { pointerType: "mouse" }));
check("leaving hides it", tip.hidden);
plot.focus();
key("End");
key("ArrowLeft");
check("keys read too", tip.querySelector("caption").textContent === "n = 6,310", tip.textContent);
key("Escape");
check("escape hides", tip.hidden);

for (const id of all("#legend button").map((button) => button.dataset.line)) press(id);
check("without any line the charts stay whole", lines(first) === 0 && first.textContent.includes("no lines to show"));
for (const id of all("#legend button").map((button) => button.dataset.line)) press(id);
check("all lines are back", lines(first) === 10);

const moved = new Promise((done) => addEventListener("hashchange", done));
location.hash = "choice=by-hand&beta=5&beside=on&off=clone,nonsense";
await moved;
check("an address opens its view", form.choice.value === "by-hand" && form.beta.value === "5" && form.beside.checked && !drawn(first, "clone"));
const home = new Promise((done) => addEventListener("hashchange", done));
location.hash = "choice=log-only";
await home;
check("and another the next", value("NeuraLCB") === honest && drawn(first, "clone") && all(".lines .thin").length === 0);

dispatchEvent(new Event("beforeprint"));
check("on paper everything is open", all("details").length === 1 && all("details").every((details) => details.open));
dispatchEvent(new Event("afterprint"));
check("and closed again after it", all("details").every((details) => !details.open));

const width = document.documentElement.clientWidth;
check("the page does not scroll sideways", document.documentElement.scrollWidth <= width, `${document.documentElement.scrollWidth} > ${width}`);
check("one main heading, in order", all("h1").length === 1 && all("h2").length === 6, all("h2").length);
check("every button and field has a name", all("button, input, select").every((node) => node.textContent || node.closest("label")?.textContent.trim()));
check("text was not taken for markup", document.querySelector("h1").textContent.endsWith("<\/script><b>&") && !document.querySelector("h1 b"));

const requests = performance.getEntriesByType("resource").map((entry) => entry.name);
const result = { checks, errors: window.seen, requests, width };
parent.postMessage(JSON.stringify(result), "*");
