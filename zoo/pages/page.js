"use strict";
// The button that turns light into dark and back; until it is used, the page follows the reader's system.
{
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const preferred = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : preferred.matches);
  const show = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `Show the page ${isDark() ? "light" : "dark"}`);
  };
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    show();
  });
  preferred.addEventListener("change", show);
  button.hidden = false;
  show();
}
// The buttons that copy a program.
document.addEventListener("click", async ({ target }) => {
  if (!(target instanceof Element) || !target.matches(".copy")) return;
  const code = target.parentElement.querySelector("code");
  try {
    await navigator.clipboard.writeText(code.textContent);
    target.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(code); // where the clipboard is closed to pages, the reader copies the selection
    target.textContent = "Selected";
  }
  setTimeout(() => (target.textContent = "Copy"), 2000);
});
