"use strict";
// Plays the steps in the page's data block. All text goes through textContent: nothing that a submission says is markup.
const WORDS = {}; // in another language than English: by template, its translation
const say = (template, ...values) => (WORDS[template] ?? template).replace(/\{(\d)\}/g, (_, n) => values[n - 1]);
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const MIDDLE = 9; // of the levels a..s, which is zero
let program = 0;
let at = 0;
let beside = null;

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
  else if (value.low !== undefined) parts.push(value.low === value.high ? (value.nan || value.inf ? value.low : say("all {1}", value.low)) : say("{1} to {2}", value.low, value.high));
  if (value.true !== undefined && value.number === undefined) parts.push(say("{1} true", value.true));
  if (value.nan) parts.push(`${value.nan} NaN`);
  if (value.inf) parts.push(say("{1} infinite", value.inf));
  return parts.join(", ");
}

const formOf = (value) => (value.dtype ? value.dtype + (value.shape.length ? ` [${value.shape.join(", ")}]` : "") : "");

function strip(value) {
  const cell = Math.max(3, Math.min(14, Math.floor(380 / value.columns)));
  const tall = Math.max(cell, Math.floor(28 / value.rows));  // one row is no hairline
  const box = { width: cell * value.columns, height: tall * value.rows };
  const picture = draw("svg", { role: "img", class: "strip", viewBox: `0 0 ${box.width} ${box.height}`, ...box });
  picture.setAttribute("aria-label", `${formOf(value)}, ${rangeOf(value)}`);
  for (let row = 0; row < value.rows; row++) {
    for (let first = 0; first < value.columns; ) {
      const kind = cellClass(value, row * value.columns + first);
      let end = first + 1;
      while (end < value.columns && cellClass(value, row * value.columns + end) === kind) end++;
      picture.append(draw("rect", { class: kind, x: cell * first, y: tall * row, width: cell * (end - first), height: tall }));
      first = end;
    }
  }
  if (!value.levels) return picture;
  const said = make("figcaption", { class: "dim" }, value.numbers ? say("Point at a cell for its number.") : say("Point at a cell for its place."));
  picture.addEventListener("pointermove", (event) => {
    const place = picture.getBoundingClientRect();
    const row = Math.min(value.rows - 1, Math.max(0, Math.floor(((event.clientY - place.top) / place.height) * value.rows)));
    const column = Math.min(value.columns - 1, Math.max(0, Math.floor(((event.clientX - place.left) / place.width) * value.columns)));
    said.textContent = cellSaid(value, row, column);
  });
  return make("figure", { class: "tile" }, picture, said);
}

function cellSaid(value, row, column) {
  const index = row * value.columns + column;
  const place = [value.at_rows ? value.at_rows[row] : row, value.at_columns ? value.at_columns[column] : column];
  const shown = value.shape.length > 1 ? `[${place.join(", ")}]` : `[${place[1]}]`;
  const number = value.numbers ? value.numbers[index] : { "1": "True", "0": "False", N: "NaN", P: "inf", M: "-inf" }[value.levels[index]];
  const masked = value.mask && value.mask[index] === "0" ? say(", masked: this lane takes no part") : "";
  return number === undefined ? `${shown}${masked}` : `${shown} = ${number}${masked}`;
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
  const label = say("The numbers of {1}", value.name || say("this value"));
  return make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": label }, make("table", { class: "numbers" }, ...rows));
}

// --- where an access touches its tensor -------------------------------------------------------------------------------

// Boxes of touched elements, those of neighbouring rows and equal columns as one.
function boxes(runs, columns) {
  const found = [];
  for (const box of rowBoxes(runs, columns)) {
    const above = found.find((one) => one.row + one.rows === box.row && one.column === box.column && one.columns === box.columns);
    if (above) above.rows += box.rows;
    else found.push(box);
  }
  return found;
}

function* rowBoxes(runs, columns) {
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
  const picture = draw("svg", { role: "img", class: "touched", width: width + 56, height: height + 24, viewBox: `-36 -18 ${width + 56} ${height + 24}` });
  picture.append(...axes(tensor, width, height));
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

// The last index along each side of a tensor's picture.
function axes(tensor, width, height) {
  const label = (text, x, y, anchor) => {
    const mark = draw("text", { class: "index", x, y, "text-anchor": anchor });
    mark.textContent = text;
    return mark;
  };
  const found = [label("0", 0, -5, "start")];
  if (tensor.columns > 1) found.push(label(tensor.columns - 1, Math.max(width, 24), -5, "end"));
  if (tensor.rows > 1) found.push(label(tensor.rows - 1, -4, height, "end"));
  return found;
}

function touchedSaid(value, tensor) {
  const verb = {
    load: say("Loads from {1} places of {2}", value.active, tensor.name), store: say("Stores to {1} places of {2}", value.active, tensor.name),
    atomic: say("Updates {1} places of {2}", value.active, tensor.name),
  }[value.access];
  const masked = value.lanes - value.active;
  let said = `${verb}, ${tensor.dtype} [${tensor.shape.join(", ")}]`;
  if (masked) said += say("; {1} of {2} lanes are masked", masked, value.lanes);
  if (value.boxed) said += say("; drawn as the box around them");
  if (value.between) said += say("; {1} in memory between the tensor's elements", value.between);
  const outside = value.outside;
  if (outside) {
    const has = outside.size === 1 ? say("element 0 alone") : say("elements 0 to {1}", outside.size - 1);
    said += say(". Of these, {1} do not exist: the tensor has {2}, and a lane asks for element {3}", outside.before + outside.after, has, outside.first);
  }
  return said + ".";
}

// --- a step ---------------------------------------------------------------------------------------------------------

// what a value without a name of its own is called, by the operation of Triton's that made it
const MADE_BY = {
  addi: say("a sum"), addf: say("a sum"), subi: say("a difference"), subf: say("a difference"), muli: say("a product"), mulf: say("a product"),
  divsi: say("a quotient"), divf: say("a quotient"), remsi: say("a remainder"), cmpi: say("a comparison"), cmpf: say("a comparison"),
  andi: say("a mask"), select: say("a choice"), reduce: say("a reduction"), dot: say("a matrix product"), extf: say("a conversion"),
  truncf: say("a conversion"), extsi: say("a conversion"), load: say("a load"), store: say("the stored value"), atomic: say("an atomic's operand"),
};

function shown(value) {
  const name = value.name || MADE_BY[value.access] || MADE_BY[value.op] || say("a value ({1})", value.op);
  const parts = [make("h3", {}, make("code", {}, name), ` ${formOf(value)}`), make("p", { class: "range" }, rangeOf(value))];
  if (value.wrong) {
    const wrong = data.wrong;
    const said = wrong ? " " + say("The first wrong element of the result is [{1}]: {2} where {3} is right.", wrong.index.join(", "), wrong.got, wrong.expected) : "";
    parts.push(make("p", { class: "failed" }, say("{1} of its lanes will be wrong.", value.wrong) + said));
  }
  if (value.levels) parts.push(value.numbers && value.columns <= 16 ? numbers(value) : strip(value));
  if (value.at_rows) parts.push(make("p", { class: "dim" }, say("{1} of {2} elements are drawn, at even distances.", value.rows * value.columns, value.shape.reduce((a, b) => a * b, 1))));
  if (value.access && value.tensor !== null) parts.push(touchedIn(value));
  if (value.access && value.tensor === null && value.active) parts.push(make("p", { class: "failed" }, say("These addresses are in no tensor.")));
  return make("article", { class: "value" + (isWrong(value) ? " wrong-value" : "") }, ...parts);
}

const isWrong = (value) => value.wrong !== undefined || value.outside !== undefined;

function described(step) {
  const turns = step.loops.map(([line, turn]) => say("iteration {1} of the loop in {2}", turn, data.places[line - 1]));
  return [data.places[step.line - 1], ...turns].join(", ");
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

// --- the program beside it, the time line, and the whole grid -----------------------------------------------------------

// The step of another program at the same line and turns as `step`; undefined where it has none.
function counterpart(other, step) {
  const wanted = JSON.stringify([step.line, step.loops]);
  return data.programs[other].steps.find((one) => JSON.stringify([one.line, one.loops]) === wanted);
}

function showBeside(step) {
  const box = $("beside-values");
  box.hidden = beside === null;
  if (beside === null) return;
  const same = step && counterpart(beside, step);
  const title = make("h3", {}, say("Program {1}, the same line", ids(data.programs[beside])));
  box.replaceChildren(title, ...(same ? same.values.map(shown) : [make("p", {}, say("It does not reach this line in this turn."))]));
}

function timeline() {
  const every = steps();
  const lines = [...new Set(every.map((step) => step.line))].sort((a, b) => a - b);
  const height = 6 * lines.length, width = 560;
  const cell = width / Math.max(every.length, 1);
  const picture = draw("svg", { class: "timeline", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  every.forEach((step, number) => {
    const kind = step.values.some(isWrong) ? "out" : number === at ? "here" : "visit";
    picture.append(draw("rect", { class: kind, x: cell * number, y: 6 * lines.indexOf(step.line), width: Math.max(cell, 1.5), height: 6 }));
  });
  picture.addEventListener("click", (event) => {
    const place = picture.getBoundingClientRect();
    show(Math.floor(((event.clientX - place.left) / place.width) * every.length));
  });
  $("timeline").replaceChildren(picture);
}

// What programs touch of a tensor: each box once, with the programs that touch it and the iteration in which one comes there first.
function touchedBoxes(mine, tensor, index) {
  const found = new Map();
  for (const { played, number } of mine)
    for (const step of played.steps)
      for (const value of step.values.filter((one) => one.tensor === index && one.access))
        for (const box of boxes(value.runs, Math.max(tensor.columns, 1))) {
          const key = [box.row, box.column, box.rows, box.columns].join();
          if (!found.has(key)) found.set(key, { ...box, owners: new Set(), turn: Math.max(1, ...step.loops.map(([, turn]) => turn)) });
          found.get(key).owners.add(number);
        }
  return [...found.values()];
}

// The picture of a box: in the colour of its program, or in that of elements which several share, with their ids where they fit.
function boxPicture(box, scale, grid) {
  const owners = [...box.owners];
  const size = { width: Math.max(scale * box.columns, 1), height: Math.max(scale * box.rows, 1) };
  const kind = owners.length > 1 ? "shared" : `owner${owners[0] % 6}`;
  const part = draw("g", { class: `of${box.owners.has(program) ? " mine" : ""}${box.turn > 1 ? " later" : ""}` });
  const title = draw("title", {});
  title.textContent = owners.map((number) => ids(data.programs[number])).join(", ");
  part.append(title, draw("rect", { class: kind, x: scale * box.column, y: scale * box.row, ...size }));
  const axes = grid.findLastIndex((count) => count > 1) + 1;
  const text = owners.map((number) => data.programs[number].id.slice(0, axes || 1).join(",")).join(" · ");
  if (6 * text.length < size.width && size.height >= 10) {
    const label = draw("text", { class: "index", x: scale * box.column + size.width / 2, y: scale * box.row + size.height / 2 + 3, "text-anchor": "middle" });
    label.textContent = text;
    part.append(label);
  }
  return part;
}

// For each tensor, what each program of the launch that is played touches of it.
function gridPictures() {
  const launch = data.programs[program].launch;
  const mine = data.programs.map((played, number) => ({ played, number })).filter((one) => one.played.launch === launch);
  const found = [];
  data.tensors.forEach((tensor, index) => {
    const touched = touchedBoxes(mine, tensor, index);
    if (!touched.length) return;
    const columns = Math.max(tensor.columns, 1), rows = Math.max(tensor.rows, 1);
    const scale = Math.min(220 / columns, 140 / rows, 20);
    const width = Math.max(scale * columns, 12), height = Math.max(scale * rows, 12);
    const picture = draw("svg", { role: "img", width: width + 46, height: height + 22, viewBox: `-34 -18 ${width + 46} ${height + 22}` });
    picture.append(...axes(tensor, width, height), draw("rect", { class: "tensor", width, height }));
    const last = (box) => box.owners.has(program); // frames of the program that is played lie above the others
    for (const box of touched.sort((a, b) => last(a) - last(b))) picture.append(boxPicture(box, scale, data.launches[launch].grid));
    const said = `${tensor.name}, ${tensor.dtype} [${tensor.shape.join(", ")}]`;
    picture.setAttribute("aria-label", say("{1}: what the programs that can be played touch of it", said));
    found.push(make("figure", {}, picture, make("figcaption", {}, said)));
  });
  const key = mine.slice(0, 12).map(({ played, number }) => make("span", {}, make("span", { class: `key owner${number % 6}` }), ids(played)));
  if (mine.length > 1) key.push(make("span", {}, make("span", { class: "key shared" }), say("several programs")));
  $("grid-pictures").replaceChildren(...found);
  $("grid-key").replaceChildren(...key);
}

function show(position) {
  at = Math.max(0, Math.min(position, steps().length - 1));
  const step = steps()[at];
  const played = data.programs[program];
  $("values").replaceChildren(...(step ? step.values.map(shown) : []));
  showBeside(step);
  timeline();
  $("position").max = Math.max(steps().length, 1);
  $("position").value = at + 1;
  $("position").setAttribute("aria-valuetext", step ? say("step {1} of {2}, {3}", at + 1, steps().length, data.places[step.line - 1]) : say("no steps"));
  const wrong = step && step.values.some(isWrong) ? " " + say("Something goes wrong here.") : "";
  const gap = played.count > steps().length ? say(" (number {1} of {2})", step.number + 1, played.count) : "";
  $("where").textContent = step ? say("Step {1} of {2}{3}: {4}.", at + 1, steps().length, gap, described(step)) + wrong : say("This program did nothing that can be shown.");
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
  gridPictures();
  show(opening());
}

// The last visit of the line that the check blames before something goes wrong, or its first; else what goes wrong first.
function opening() {
  const first = data.programs[program].first_wrong;
  const visits = steps().flatMap((step, number) => (step.line === data.blamed ? [number] : []));
  const before = visits.filter((number) => first === null || number <= first);
  return before.pop() ?? visits[0] ?? first ?? 0;
}

function toWrong() {
  const first = data.programs[program].first_wrong;
  if (first !== null) show(first);
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
    Home: () => show(0), End: () => show(steps().length - 1), w: toWrong,
  }[event.key];
  if (!goes || (event.target.classList.contains("wide") && event.key.startsWith("Arrow"))) return;
  event.preventDefault();
  goes();
}

data.programs.forEach((played, number) => {
  const launch = data.launches[played.launch];
  const name = data.launches.length > 1 ? say("launch {1}, {2}", played.launch + 1, launch.kernel) + " " : `${launch.kernel} `;
  const option = make("option", { value: number }, `${name}${ids(played)}${played.first_wrong === null ? "" : " ✗"}`);
  $("program").append(option);
  $("beside").append(make("option", { value: number }, `${name}${ids(played)}`));
});
$("beside").addEventListener("change", (event) => {
  beside = event.target.value === "" ? null : Number(event.target.value);
  show(at);
});
$("back").addEventListener("click", () => show(at - 1));
$("forward").addEventListener("click", () => show(at + 1));
$("to-start").addEventListener("click", () => show(0));
$("turn").addEventListener("click", () => goTurn(1));
$("turn-back").addEventListener("click", () => goTurn(-1));
$("to-wrong").addEventListener("click", toWrong);
$("program").addEventListener("change", (event) => choose(Number(event.target.value)));
$("position").addEventListener("input", (event) => show(Number(event.target.value) - 1));
$("source").addEventListener("click", (event) => {
  const row = event.target.closest("li");
  if (row) toLine(Number(row.id.slice(5)));
});
document.addEventListener("keydown", key);
for (const id of ["controls", "played", "keys", "grid"]) $(id).hidden = false;
$("beside").parentElement.hidden = data.programs.length < 2;
choose(0);
