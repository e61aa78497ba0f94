// A button beside each command copies it; a check that a link leads to is unfolded. The page reads the same without.
for (const command of document.querySelectorAll("code.command")) {
  const button = document.createElement("button");
  button.textContent = "Copy";
  button.setAttribute("aria-label", "Copy the command");
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(command.textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  command.after(" ", button);
}
function unfold() {
  const target = document.getElementById(location.hash.slice(1));
  if (target instanceof HTMLDetailsElement) target.open = true;
}
addEventListener("hashchange", unfold);
unfold();
