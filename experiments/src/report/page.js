// The controls, the legend and the charts of the page, and the state that they share, kept in the address.

const { report, algorithms, selections } = JSON.parse(document.getElementById("data").textContent);
const controls = document.getElementById("controls"), hand = document.getElementById("hand");
const form = controls.elements;

const state = { choice: form.choice.value, beside: false, off: new Set(), hand: {} };

const panels = [...document.querySelectorAll("section.figure")].flatMap((section, i) =>
  [...section.querySelectorAll(".panel")].map((panel) => {
    const problem = report.problems[Number(panel.dataset.problem)];
    return { figure: report.figures[i], problem, chart: new Chart(panel.querySelector(".plot"), problem.title) };
  }),
);

const buttons = algorithms.map((algorithm) => {
  const line = { style: algorithm.style, thin: false };
  const button = element("button", { type: "button", "aria-pressed": "true", "data-line": algorithm.id }, swatch(line), algorithm.name);
  button.addEventListener("click", () => {
    if (!state.off.delete(algorithm.id)) state.off.add(algorithm.id);
    update();
  });
  return button;
});

// What the choice looks at, in every caption.
function note() {
  const beside = state.beside && state.choice !== "oracle"
    ? " Thin dotted lines: what the oracle chooses, which looks at the truth."
    : "";
  if (state.choice !== "by-hand") return selections.find((way) => way.id === state.choice).note + beside;
  const numbers = Object.fromEntries(Object.entries(state.hand).map(([field, value]) => [field, value || null]));
  return `Hyper-parameters are set by hand, alike for every algorithm that has them: ${settingText(numbers)}. An ` +
    `algorithm that was run with one value only is shown with that value.${beside}`;
}

// A legend of its own for each figure: on paper the common one is out of sight, and modes are not in it.
function key(section, figure) {
  const seen = new Map();
  for (const panel of panels.filter((panel) => panel.figure === figure)) {
    for (const line of panel.chart.lines) if (!line.thin) seen.set(line.name, line);
  }
  section.classList.toggle("by-mode", figure.by_mode);
  section.querySelector(".key").replaceChildren(...[...seen.values()].map((line) => element("li", {}, swatch(line), line.name)));
}

function update() {
  hand.hidden = state.choice !== "by-hand";
  if (form.beside) form.beside.disabled = state.choice === "oracle";
  buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(!state.off.has(algorithms[i].id))));
  for (const { chart, problem, figure } of panels) chart.show(linesOf(problem, figure, state, algorithms));
  document.querySelectorAll("section.figure").forEach((section, i) => {
    section.querySelector(".note").textContent = note();
    key(section, report.figures[i]);
  });
}

function readControls() {
  state.choice = form.choice.value;
  state.beside = Boolean(form.beside?.checked);
  for (const list of hand.querySelectorAll("select")) state.hand[list.name] = list.value;
}

// The address keeps what differs from the page as it opens, so that a view can be sent to someone.
const opening = new URLSearchParams(new FormData(controls));

function toAddress() {
  const now = new URLSearchParams(new FormData(controls));
  for (const [name, value] of opening) if (now.get(name) === value) now.delete(name);
  if (state.off.size) now.set("off", [...state.off].join(","));
  history.replaceState(null, "", now.size ? `#${now}` : location.pathname + location.search);
}

function fromAddress() {
  if (!location.hash.includes("=")) return; // a link to a section
  const wanted = new URLSearchParams(location.hash.slice(1));
  for (const name of ["choice", ...[...hand.querySelectorAll("select")].map((list) => list.name)]) {
    const offered = [...controls.querySelectorAll(`[name=${name}], [name=${name}] option`)].map((node) => node.value);
    const value = wanted.get(name) ?? opening.get(name);
    if (offered.includes(value)) form[name].value = value;
  }
  if (form.beside) form.beside.checked = wanted.has("beside");
  state.off = new Set((wanted.get("off") ?? "").split(",").filter((id) => algorithms.some((known) => known.id === id)));
}

controls.addEventListener("submit", (event) => event.preventDefault());
controls.addEventListener("change", () => {
  readControls();
  update();
  toAddress();
});
document.getElementById("legend").addEventListener("click", toAddress);
addEventListener("hashchange", () => {
  fromAddress();
  readControls();
  update();
});

// On paper everything is open.
let opened = [];
addEventListener("beforeprint", () => {
  panels.forEach(({ chart }) => chart.read(null));
  opened = [...document.querySelectorAll("details:not([open])")];
  opened.forEach((details) => (details.open = true));
});
addEventListener("afterprint", () => opened.forEach((details) => (details.open = false)));

document.getElementById("legend").append(...buttons);
controls.hidden = false;
fromAddress();
readControls();
update();
