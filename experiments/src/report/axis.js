// A log axis between two pixel positions, and numbers for people.

class Axis {
  constructor(low, high, start, end) {
    Object.assign(this, { low, high, start, end });
  }

  // The position of a value; what lies outside is put on the edge.
  at(value) {
    const share = Math.log(Math.max(value, Number.MIN_VALUE) / this.low) / Math.log(this.high / this.low);
    return this.start + Math.min(Math.max(share, 0), 1) * (this.end - this.start);
  }

  // [value, labelled]: of 1-2-5 only the decades carry a label if there are `enough` of them, else all do; round steps
  // where the range is too narrow for either.
  ticks(enough) {
    const low = this.low * (1 - 1e-9), high = this.high * (1 + 1e-9);
    const ticks = [];
    for (let decade = Math.floor(Math.log10(low)); decade <= Math.ceil(Math.log10(high)); decade++) {
      for (const lead of [1, 2, 5]) {
        const value = lead * 10 ** decade;
        if (value >= low && value <= high) ticks.push([value, lead === 1]);
      }
    }
    if (ticks.length < 3) {
      const step = roundStep((high - low) / 3);
      const first = Math.ceil(low / step), last = Math.floor(high / step);
      return Array.from({ length: Math.max(last - first + 1, 0) }, (_, i) => [(first + i) * step, true]);
    }
    const all = ticks.filter(([, decade]) => decade).length < enough;
    return ticks.map(([value, decade]) => [value, decade || all]);
  }
}

// The largest of 1, 2, 5 times a power of ten that is not above `most`.
function roundStep(most) {
  const decade = 10 ** Math.floor(Math.log10(most));
  return [5, 2, 1].map((lead) => lead * decade).find((step) => step <= most) ?? decade;
}

// A tick's text: 0.05, 20, 1k, 2·10⁻⁵.
function tickLabel(value) {
  const round = (v) => Number(v.toPrecision(4));
  if (value >= 999999.5) return `${round(value / 1e6)}M`;
  if (value >= 999.5) return `${round(value / 1e3)}k`;
  if (value >= 0.99e-4) return String(round(value));
  const [lead, exponent] = value.toExponential(3).split("e");
  const raised = [...exponent].map((c) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c] ?? "⁻").join("");
  return Number(lead) === 1 ? `10${raised}` : `${Number(lead)}·10${raised}`;
}

// Decimals that show three significant digits; rounding first, because 0.09996 is 0.100.
function decimals(value) {
  if (!value || !Number.isFinite(value)) return 3;
  return Math.min(Math.max(2 - Number(value.toExponential(2).split("e")[1]), 0), 100);
}
