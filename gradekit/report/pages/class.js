"use strict";
const WORDS = {}; // in another language than English: by template, its translation
const say = (template, ...values) => (WORDS[template] ?? template).replace(/\{(\d)\}/g, (_, n) => values[n - 1]);
// Sorts the table of students by a column, and shows those that a search or a status selects.
const table = document.getElementById("class");
const body = table.tBodies[0];
const search = document.getElementById("search");
const status = document.getElementById("status");
const number = (text) => (text.trim() === "" ? -Infinity : parseFloat(text));

function sortBy(column, heading) {
  const rising = heading.getAttribute("aria-sort") !== "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", rising ? "ascending" : "descending");
  const text = (row) => row.cells[column].textContent;
  const rows = [...body.rows];
  const numeric = rows.every((row) => text(row).trim() === "" || !Number.isNaN(parseFloat(text(row))));
  rows.sort((a, b) => (rising ? 1 : -1) * (numeric ? number(text(a)) - number(text(b)) : text(a).localeCompare(text(b))));
  body.append(...rows);
}

function filter() {
  const words = search.value.toLowerCase();
  let shown = 0;
  for (const row of body.rows) {
    const wanted = row.textContent.toLowerCase().includes(words) && (!status.value || row.cells[1].textContent === status.value);
    row.hidden = !wanted;
    shown += wanted;
  }
  document.getElementById("shown").textContent = say("{1} of {2} shown", shown, body.rows.length);
}

[...table.tHead.rows[0].cells].forEach((heading, column) => {
  const button = document.createElement("button");
  button.className = "sort";
  button.textContent = heading.textContent;
  if (heading.title) button.setAttribute("aria-label", `${heading.textContent}: ${heading.title}`);
  button.addEventListener("click", () => sortBy(column, heading));
  heading.replaceChildren(button);
});
for (const kind of new Set([...body.rows].map((row) => row.cells[1].textContent))) status.append(new Option(kind, kind));
search.addEventListener("input", filter);
status.addEventListener("change", filter);
document.getElementById("filters").hidden = false;
filter();
