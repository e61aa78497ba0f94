"use strict";
// Plays the steps in the page's data block. All text goes through textContent: nothing that a submission says is markup.
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const MIDDLE = 9; // of the levels a..s, which is zero
let program = 0;
let at = 0;

function make(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function draw(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

const steps = () => data.programs[program].steps;
const ids = (played) => `(${played.id.join(", ")})`;

// --- one value ------------------------------------------------------------------------------------------------------

function levelClass(level, masked) {
  if (masked) return "masked";
  if ("NPM".includes(level)) return "nan";
  if (level === "1") return "p9";
  if (level === "0") return "p0";
  const signed = level.charCodeAt(0) - 97 - MIDDLE;
  return (signed < 0 ? "n" : "p") + Math.abs(signed);
}

function cellClass(value, index) {
  const masked = value.mask && value.mask[index] === "0";
  const wrong = value.wrong_cells && value.wrong_cells[index] === "1";
  return levelClass(value.levels[index], masked) + (wrong ? " bad" : "");
}

function rangeOf(value) {
  const parts = [];
  if (value.number !== undefined) parts.push(value.number);
  else if (value.low !== undefined) parts.push(value.low === value.high ? `all ${value.low}` : `${value.low} to ${value.high}`);
  if (value.true !== undefined && value.number === undefined) parts.push(`${value.true} true`);
  if (value.nan) parts.push(`${value.nan} NaN`);
  if (value.inf) parts.push(`${value.inf} infinite`);
  return parts.join(", ");
}

const formOf = (value) => (value.dtype ? value.dtype + (value.shape.length ? ` [${value.shape.join(", ")}]` : "") : "");

function strip(value) {
  const cell = Math.max(3, Math.min(14, Math.floor(380 / value.columns)));
  const box = { width: cell * value.columns, height: cell * value.rows };
  const picture = draw("svg", { role: "img", class: "strip", viewBox: `0 0 ${box.width} ${box.height}`, ...box });
  picture.setAttribute("aria-label", `${formOf(value)}, ${rangeOf(value)}`);
  for (let row = 0; row < value.rows; row++) {
    for (let first = 0; first < value.columns; ) {
      const kind = cellClass(value, row * value.columns + first);
      let end = first + 1;
      while (end < value.columns && cellClass(value, row * value.columns + end) === kind) end++;
      picture.append(draw("rect", { class: kind, x: cell * first, y: cell * row, width: cell * (end - first), height: cell }));
      first = end;
    }
  }
  return picture;
}

function numbers(value) {
  const rows = [];
  for (let row = 0; row < value.rows; row++) {
    const cells = [];
    for (let column = 0; column < value.columns; column++) {
      const index = row * value.columns + column;
      cells.push(make("td", { class: cellClass(value, index) }, value.numbers[index]));
    }
    rows.push(make("tr", {}, ...cells));
  }
  const label = `The numbers of ${value.name || "this value"}`;
  return make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": label }, make("table", { class: "numbers" }, ...rows));
}

// --- where an access touches its tensor -------------------------------------------------------------------------------

function* boxes(runs, columns) {
  for (let [first, count] of runs) {
    while (count > 0) {
      const column = first % columns;
      const whole = column === 0 && count >= columns ? Math.floor(count / columns) : 0;
      const taken = whole ? whole * columns : Math.min(count, columns - column);
      yield { row: Math.floor(first / columns), column, rows: whole || 1, columns: whole ? columns : taken };
      first += taken;
      count -= taken;
    }
  }
}

function touchedIn(value) {
  const tensor = data.tensors[value.tensor];
  const columns = Math.max(tensor.columns, 1), rows = Math.max(tensor.rows, 1);
  const scale = Math.min(360 / columns, 140 / rows, 20);
  const width = Math.max(scale * columns, 12), height = Math.max(scale * rows, 12);
  const picture = draw("svg", { role: "img", class: "touched", width: width + 40, height: height + 8, viewBox: `-20 -4 ${width + 40} ${height + 8}` });
  picture.append(draw("rect", { class: "tensor", width, height }));
  for (const box of boxes(value.runs, columns)) {
    const size = { width: Math.max(scale * box.columns, 1), height: Math.max(scale * box.rows, 1) };
    picture.append(draw("rect", { class: value.access === "load" ? "read" : "write", x: scale * box.column, y: scale * box.row, ...size }));
  }
  const outside = value.outside;
  if (outside && outside.before) picture.append(draw("rect", { class: "out", x: -16, y: 0, width: 12, height: Math.min(height, 20) }));
  if (outside && outside.after) picture.append(draw("rect", { class: "out", x: width + 4, y: height - Math.min(height, 20), width: 12, height: Math.min(height, 20) }));
  const said = touchedSaid(value, tensor);
  picture.setAttribute("aria-label", said);
  return make("figure", {}, picture, make("figcaption", outside ? { class: "failed" } : {}, said));
}

function touchedSaid(value, tensor) {
  const verb = { load: "Loads", store: "Stores", atomic: "Updates" }[value.access];
  const masked = value.lanes - value.active;
  let said = `${verb} ${value.active} ${value.active === 1 ? "element" : "elements"} of ${tensor.name}, ${tensor.dtype} [${tensor.shape.join(", ")}]`;
  if (masked) said += `; ${masked} of ${value.lanes} lanes are masked`;
  if (value.boxed) said += "; drawn as the box around them";
  if (value.between) said += `; ${value.between} in memory between the tensor's elements`;
  const outside = value.outside;
  if (outside) {
    const count = outside.before + outside.after;
    said += `. ${count} ${count === 1 ? "lane is" : "lanes are"} outside: element ${outside.first} of ${outside.size}`;
  }
  return said + ".";
}

// --- a step ---------------------------------------------------------------------------------------------------------

function shown(value) {
  const name = value.name || { load: "a load", store: "the stored value", atomic: "an atomic's operand" }[value.access] || `a value (${value.op})`;
  const parts = [make("h3", {}, make("code", {}, name), ` ${formOf(value)}`), make("p", { class: "range" }, rangeOf(value))];
  if (value.wrong) {
    const wrong = data.wrong;
    const said = wrong ? ` The first wrong element of the result is [${wrong.index.join(", ")}]: ${wrong.got} where ${wrong.expected} is right.` : "";
    parts.push(make("p", { class: "failed" }, `${value.wrong} ${value.wrong === 1 ? "lane of this ends" : "lanes of this end"} up wrong.${said}`));
  }
  if (value.levels) parts.push(value.numbers && value.columns <= 16 ? numbers(value) : strip(value));
  if (value.at_rows) parts.push(make("p", { class: "dim" }, `${value.rows} rows and ${value.columns} columns of the tile are drawn.`));
  if (value.access && value.tensor !== null) parts.push(touchedIn(value));
  if (value.access && value.tensor === null && value.active) parts.push(make("p", { class: "failed" }, "These addresses are in no tensor."));
  return make("article", { class: "value" + (isWrong(value) ? " wrong-value" : "") }, ...parts);
}

const isWrong = (value) => value.wrong !== undefined || value.outside !== undefined;

function described(step) {
  const turns = step.loops.map(([line, turn]) => `turn ${turn} of the loop in line ${line}`);
  return [`line ${step.line}`, ...turns].join(", ");
}

function markLines() {
  const latest = new Map();
  steps().slice(0, at + 1).forEach((step) => latest.set(step.line, step));
  for (const row of $("source").children) {
    const step = latest.get(Number(row.id.slice(5)));
    row.classList.toggle("now", step === steps()[at]);
    row.classList.toggle("visited", step !== undefined);
    const value = step && step.values[step.values.length - 1];
    row.lastChild.textContent = value ? ` ${formOf(value)}${value.number !== undefined ? " " + value.number : ""}` : "";
    if (step === steps()[at]) row.setAttribute("aria-current", "step");
    else row.removeAttribute("aria-current");
  }
  const now = $("source").querySelector(".now");
  if (now) $("source").scrollTop = now.offsetTop - $("source").clientHeight / 2;
}

function show(position) {
  at = Math.max(0, Math.min(position, steps().length - 1));
  const step = steps()[at];
  const played = data.programs[program];
  $("values").replaceChildren(...(step ? step.values.map(shown) : []));
  $("position").max = Math.max(steps().length, 1);
  $("position").value = at + 1;
  $("position").setAttribute("aria-valuetext", step ? `step ${at + 1} of ${steps().length}, line ${step.line}` : "no steps");
  const wrong = step && step.values.some(isWrong) ? " Something goes wrong here." : "";
  const gap = played.count > steps().length ? ` (number ${step.number + 1} of ${played.count})` : "";
  $("where").textContent = step ? `Step ${at + 1} of ${steps().length}${gap}: ${described(step)}.${wrong}` : "This program did nothing that can be shown.";
  $("where").classList.toggle("failed", wrong !== "");
  $("to-wrong").disabled = played.first_wrong === null;
  $("turn").disabled = turnFrom(1) === null;
  $("turn-back").disabled = turnFrom(-1) === null;
  markLines();
}

// The step of the same line, or else of the same loop, in the turn after (1) or before (-1); null where there is none.
function turnFrom(direction) {
  const here = steps()[at];
  if (!here || !here.loops.length) return null;
  const depth = here.loops.length;
  const wanted = JSON.stringify(here.loops.map(([line, turn], k) => [line, k === depth - 1 ? turn + direction : turn]));
  let found = null;
  for (let k = at + direction; k >= 0 && k < steps().length; k += direction) {
    const same = JSON.stringify(steps()[k].loops.slice(0, depth)) === wanted;
    if (same && steps()[k].line === here.line) return k;
    if (same && found === null) found = k;
  }
  return found;
}

const goTurn = (direction) => {
  const found = turnFrom(direction);
  if (found !== null) show(found);
};

function choose(number) {
  program = number;
  const first = data.programs[program].first_wrong;
  show(first === null ? 0 : first);
}

function toLine(line) {
  const later = steps().findIndex((step, k) => k > at && step.line === line);
  const any = later >= 0 ? later : steps().findIndex((step) => step.line === line);
  if (any >= 0) show(any);
}

function key(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || ["SELECT", "INPUT"].includes(event.target.tagName)) return;
  const goes = {
    ArrowRight: () => (event.shiftKey ? goTurn(1) : show(at + 1)), ArrowLeft: () => (event.shiftKey ? goTurn(-1) : show(at - 1)),
    Home: () => show(0), End: () => show(steps().length - 1), w: () => choose(program),
  }[event.key];
  if (!goes || (event.target.classList.contains("wide") && event.key.startsWith("Arrow"))) return;
  event.preventDefault();
  goes();
}

data.programs.forEach((played, number) => {
  const launch = data.launches[played.launch];
  const name = data.launches.length > 1 ? `launch ${played.launch + 1}, ${launch.kernel} ` : `${launch.kernel} `;
  const option = make("option", { value: number }, `${name}${ids(played)}${played.first_wrong === null ? "" : " ✗"}`);
  $("program").append(option);
});
$("back").addEventListener("click", () => show(at - 1));
$("forward").addEventListener("click", () => show(at + 1));
$("to-start").addEventListener("click", () => show(0));
$("turn").addEventListener("click", () => goTurn(1));
$("turn-back").addEventListener("click", () => goTurn(-1));
$("to-wrong").addEventListener("click", () => choose(program));
$("program").addEventListener("change", (event) => choose(Number(event.target.value)));
$("position").addEventListener("input", (event) => show(Number(event.target.value) - 1));
$("source").addEventListener("click", (event) => {
  const row = event.target.closest("li");
  if (row) toLine(Number(row.id.slice(5)));
});
document.addEventListener("keydown", key);
for (const id of ["controls", "played", "keys"]) $(id).hidden = false;
choose(0);
