// Which lines a panel shows: the state of the controls, applied to the data.
//
// A line is { key, name, style, setting, reps, points, thin }; `key` is the algorithm that the legend switches.

const FIELDS = ["mode", "learning_rate", "sigma", "beta"];
const WORDS = { mode: "", learning_rate: "lr ", sigma: "σ ", beta: "β " };

function settingText(setting) {
  return FIELDS.filter((field) => setting[field] != null).map((field) => WORDS[field] + setting[field]).join(", ");
}

// The line of an algorithm under a way of choosing; where there was nothing to choose, its only curve.
function chosenLine(problem, selection, algorithm, mode) {
  const choice = problem.choices.find(
    (c) => c.selection === selection && c.algorithm === algorithm && (c.mode ?? null) === mode,
  );
  if (choice) return choice;
  const own = problem.curves.filter((c) => c.algorithm === algorithm);
  return own.length === 1 && mode === null ? { ...own[0], setting: settingText(own[0]) } : null;
}

// The line of an algorithm with the setting of the controls. A hyper-parameter that the algorithm has not, or that it
// was run with at one value only, does not count.
function handLine(problem, hand, algorithm, mode) {
  const own = problem.curves.filter((c) => c.algorithm === algorithm);
  const wanted = { ...hand, mode: mode ?? hand.mode };
  const varied = FIELDS.filter((field) => new Set(own.map((c) => c[field] ?? null)).size > 1);
  const same = (had, field) => had === (field === "mode" ? wanted.mode : Number(wanted[field]));
  const fits = (c) => varied.every((field) => c[field] == null || same(c[field], field));
  const curve = own.find(fits);
  return curve ? { ...curve, setting: settingText(curve) } : null;
}

// The lines of a panel, in the order of the legend, and the names of the algorithms that have none.
function linesOf(problem, figure, state, algorithms) {
  const lines = [], missing = [];
  for (const algorithm of algorithms) {
    const { id, name, style } = algorithm;
    const own = [...problem.curves, ...problem.choices].filter((c) => c.algorithm === id);
    if (state.off.has(id) || own.length === 0) continue;
    const modes = figure.by_mode && !style.reference
      ? ["S", "B"].filter((mode) => own.some((c) => c.mode === mode))
      : [null];
    for (const mode of modes) {
      const chosen = state.choice === "by-hand"
        ? handLine(problem, state.hand, id, mode)
        : chosenLine(problem, state.choice, id, mode);
      const label = mode === null ? name : `${name} ${mode}`;
      const look = { key: id, name: label, style: mode === null ? style : algorithm[mode] };
      if (chosen) lines.push({ ...chosen, ...look, thin: false });
      else missing.push(label);
      const oracle = state.beside && state.choice !== "oracle" ? chosenLine(problem, "oracle", id, mode) : null;
      if (oracle && problem.choices.includes(oracle)) {
        lines.push({ ...oracle, ...look, name: `${label}, oracle`, thin: true });
      }
    }
  }
  for (const line of lines) line.points = line.points.filter((point) => point.every(Number.isFinite));
  return { lines: lines.filter((line) => line.points.length > 0), missing };
}
