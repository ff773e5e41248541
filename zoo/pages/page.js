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
