const WORDS = {}; // in another language than English: by template, its translation
const say = (template) => WORDS[template] ?? template;
// A button beside each command copies it; a check that a link leads to is unfolded. The page reads the same without.
for (const command of document.querySelectorAll("code.command")) {
  const button = document.createElement("button");
  button.textContent = say("Copy");
  button.setAttribute("aria-label", say("Copy the command"));
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(command.textContent);
    button.textContent = say("Copied");
    setTimeout(() => { button.textContent = say("Copy"); }, 1500);
  });
  command.after(" ", button);
}
function unfold() {
  const target = document.getElementById(location.hash.slice(1));
  if (target instanceof HTMLDetailsElement) target.open = true;
}
addEventListener("hashchange", unfold);
unfold();
