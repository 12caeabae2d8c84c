// One chart: lines with 95 % bands on log axes, drawn as SVG, read by pointer, touch or keyboard.

const GAP = 14; // least distance of two markers of one line

function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// Both colours of a line; the style sheet takes the one that suits the ground.
const colours = (style) => `--on-light:${style.colour};--on-dark:${style.dark}`;

function strokeOf(line) {
  if (line.thin) return { "stroke-width": 1.1, "stroke-dasharray": "2 2" };
  const { width, dash } = line.style;
  return dash ? { "stroke-width": width, "stroke-dasharray": dash } : { "stroke-width": width };
}

// A short piece of a line, for legends.
function swatch(line) {
  const picture = svg("svg", { class: "swatch", width: 30, height: 12, viewBox: "0 0 30 12", "aria-hidden": "true" });
  const series = svg("g", { class: "series", style: colours(line.style) });
  series.append(svg("path", { class: "line", d: "M1 6h28", ...strokeOf(line) }));
  if (line.style.marker && !line.thin) {
    series.append(svg("path", { class: line.style.hollow ? "marks hollow" : "marks", d: `M15 6${line.style.marker}` }));
  }
  picture.append(series);
  return picture;
}

class Chart {
  constructor(plot, title) {
    this.plot = plot;
    this.title = title;
    this.lines = [];
    this.missing = [];
    this.n = null;
    this.tip = element("div", { class: "tip", role: "status", hidden: "" });
    plot.tabIndex = 0;
    plot.setAttribute("role", "group");
    plot.addEventListener("pointermove", (event) => this.read(this.nearest(event)));
    plot.addEventListener("pointerdown", (event) => this.read(this.nearest(event)));
    plot.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && this.read(null));
    plot.addEventListener("blur", () => this.read(null));
    plot.addEventListener("keydown", (event) => this.key(event));
    let drawn = 0;
    new ResizeObserver(() => {
      const width = plot.clientWidth;
      if (width !== drawn) this.draw();
      drawn = width;
    }).observe(plot);
  }

  show({ lines, missing }) {
    this.lines = lines;
    this.missing = missing;
    this.draw();
  }

  draw() {
    const width = Math.max(this.plot.clientWidth, 260), height = Math.round(Math.min(Math.max(width * 0.66, 250), 400));
    this.frame = { width, height, left: 54, right: width - 12, top: 10, bottom: height - 42 };
    this.x = this.xAxis();
    this.y = this.yAxis();
    this.cross = svg("g", { class: "cross" });
    const bands = svg("g", { class: "bands" }), lines = svg("g", { class: "lines" });
    for (const line of [...this.lines].reverse()) {
      bands.append(...this.band(line));
      lines.append(this.line(line));
    }
    const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
    picture.append(this.grid(), bands, lines, this.cross);
    const said = this.lines.length ? "arrow keys read the values" : "no lines";
    this.plot.setAttribute("aria-label", `Chart of sub-optimality against n, ${this.title}: ${said}`);
    const missing = this.missing.length ? [element("p", { class: "missing" }, `No curve: ${this.missing.join(", ")}.`)] : [];
    this.plot.replaceChildren(picture, this.tip, ...missing);
    this.read(this.n);
  }

  ns() {
    const ns = this.lines.flatMap((line) => line.points.map((point) => point[0]));
    return [...new Set(ns)].sort((a, b) => a - b);
  }

  xAxis() {
    const ns = this.ns();
    let [first, last] = ns.length ? [Math.max(ns[0], 1), Math.max(ns.at(-1), 1)] : [1, 100];
    if (first === last) [first, last] = [first / 2, last * 2];
    return new Axis(first, last, this.frame.left + 8, this.frame.right - 8);
  }

  yAxis() {
    const points = this.lines.flatMap((line) => line.points);
    let worst = Math.max(...points.map((point) => point[1]), 0);
    let best = Math.min(...points.map((point) => point[1]).filter((mean) => mean > 0), Infinity);
    if (best > worst) [best, worst] = [0.01, 1];
    // A wide interval of a single point may not squeeze all the lines into the floor.
    const top = Math.max(...points.map((point) => Math.min(point[3], 1.5 * worst)), worst);
    const bottom = Math.max(best, 1e-4 * top);
    const room = Math.max((top / bottom) ** 0.05, 1.05);
    return new Axis(bottom / room, top * room, this.frame.bottom, this.frame.top);
  }

  grid() {
    const { width, height, left, right, top, bottom } = this.frame;
    const grid = svg("g", { class: "grid" });
    for (const [value, labelled] of this.x.ticks(2)) {
      const at = this.x.at(value).toFixed(1);
      grid.append(svg("path", { class: labelled ? "major" : "minor", d: `M${at} ${top}V${bottom}` }));
      if (labelled) grid.append(svg("text", { x: at, y: bottom + 17, "text-anchor": "middle" }, tickLabel(value)));
    }
    for (const [value, labelled] of this.y.ticks(4)) {
      const at = this.y.at(value);
      grid.append(svg("path", { class: labelled ? "major" : "minor", d: `M${left} ${at.toFixed(1)}H${right}` }));
      if (labelled) grid.append(svg("text", { x: left - 7, y: at + 4, "text-anchor": "end" }, tickLabel(value)));
    }
    grid.append(svg("path", { class: "axes", d: `M${left} ${top}V${bottom}H${right}` }));
    const middle = (top + bottom) / 2;
    grid.append(svg("text", { x: (left + right) / 2, y: height - 6, "text-anchor": "middle" }, "number of logged rounds n"));
    grid.append(svg("text", { transform: `translate(11 ${middle}) rotate(-90)`, "text-anchor": "middle" }, "sub-optimality"));
    if (!this.lines.length) {
      grid.append(svg("text", { x: width / 2, y: middle, "text-anchor": "middle" }, "no lines to show"));
    }
    return grid;
  }

  place(n, value) {
    return `${this.x.at(n).toFixed(1)} ${this.y.at(value).toFixed(1)}`;
  }

  // References without markers have no band; neither has one repetition, which says nothing about spread.
  band(line) {
    if (line.thin || !line.style.marker || line.reps < 2 || line.points.length < 2) return [];
    const lower = line.points.map((point) => this.place(point[0], point[2]));
    const upper = line.points.map((point) => this.place(point[0], point[3])).reverse();
    return [svg("path", { class: "series band", "data-line": line.key, style: colours(line.style), d: `M${lower.concat(upper).join("L")}Z` })];
  }

  line(line) {
    const series = svg("g", { class: "series", style: colours(line.style), "data-line": line.key });
    let places = line.points.map((point) => this.place(point[0], point[1]));
    // A reference that was measured once holds for every n.
    if (places.length === 1 && line.style.reference) {
      const mean = line.points[0][1];
      places = [this.place(this.x.low, mean), this.place(this.x.high, mean)];
    }
    series.append(svg("path", { class: line.thin ? "line thin" : "line", d: `M${places.join("L")}`, ...strokeOf(line) }));
    if (line.style.marker && !line.thin) {
      // From the right, so that the last point always has its marker; where points are dense, not every one does.
      let free = Infinity, marks = "";
      for (const place of places.reverse()) {
        const x = Number(place.split(" ")[0]);
        if (x > free) continue;
        marks += `M${place}${line.style.marker}`;
        free = x - GAP;
      }
      series.append(svg("path", { class: line.style.hollow ? "marks hollow" : "marks", d: marks }));
    }
    return series;
  }

  // The n of the data that is nearest to the pointer.
  nearest(event) {
    const box = this.plot.getBoundingClientRect();
    const x = ((event.clientX - box.left) * this.frame.width) / box.width;
    const distance = (n) => Math.abs(this.x.at(n) - x);
    return this.ns().reduce((best, n) => (best === null || distance(n) < distance(best) ? n : best), null);
  }

  key(event) {
    const ns = this.ns(), at = ns.indexOf(this.n), last = ns.length - 1;
    if (last < 0) return;
    const moves = {
      ArrowRight: at < 0 ? 0 : Math.min(at + 1, last),
      ArrowLeft: at < 0 ? last : Math.max(at - 1, 0),
      Home: 0,
      End: last,
    };
    if (event.key === "Escape") this.read(null);
    else if (event.key in moves) this.read(ns[moves[event.key]]);
    else return;
    event.preventDefault();
  }

  // Shows the values at n, best first; `null` hides them.
  read(n) {
    this.n = this.ns().includes(n) ? n : null;
    this.tip.hidden = this.n === null;
    this.cross.replaceChildren();
    if (this.n === null) return;
    const values = this.lines
      .map((line) => {
        const everywhere = line.style.reference && line.points.length === 1;
        return { line, point: everywhere ? line.points[0] : line.points.find((point) => point[0] === n) };
      })
      .filter(({ point }) => point)
      .sort((a, b) => a.point[1] - b.point[1]);
    const x = this.x.at(n);
    this.cross.append(svg("path", { d: `M${x.toFixed(1)} ${this.frame.top}V${this.frame.bottom}` }));
    for (const { line, point } of values) {
      const dot = svg("circle", { cx: x, cy: this.y.at(point[1]), r: line.thin ? 2.5 : 4 });
      this.cross.append(svg("g", { class: "series", style: colours(line.style) }, dot));
    }
    this.tip.style.left = "0"; // or its width would be what is left on the right
    this.tip.replaceChildren(this.tipTable(n, values));
    this.placeTip(x);
  }

  tipTable(n, values) {
    const body = element("tbody");
    for (const { line, point } of values) {
      const digits = decimals(point[1]);
      const half = point[3] > point[2] ? ` ± ${((point[3] - point[2]) / 2).toFixed(digits)}` : "";
      const value = element("td", {}, point[1].toFixed(digits), element("small", {}, half));
      body.append(
        element("tr", {}, element("th", { scope: "row" }, swatch(line), line.name), value, element("td", { class: "setting" }, line.setting)),
      );
    }
    const rounds = n.toLocaleString("en");
    return element("table", {}, element("caption", {}, `n = ${rounds}`), body);
  }

  // Under the chart, so that it hides no line; above it where the window ends too soon.
  placeTip(x) {
    const box = this.plot.getBoundingClientRect(), { offsetWidth, offsetHeight } = this.tip;
    const above = innerHeight - box.bottom < offsetHeight && box.top > offsetHeight + controls.offsetHeight;
    this.tip.classList.toggle("above", above);
    this.tip.style.left = `${Math.max(Math.min(x - offsetWidth / 2, this.plot.clientWidth - offsetWidth), 0)}px`;
  }
}
