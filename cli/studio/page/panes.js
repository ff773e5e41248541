// The panes of a narrow screen, tabs by arrow keys, and the colour scheme.

import { at } from "./dom.js";

export function pane(name) {
  document.body.dataset.pane = name;
  for (const each of ["spec", "drawing", "figures"]) at(`tab-${each}`).setAttribute("aria-selected", String(each === name));
}

export function tabs(list) {
  list.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const all = [...list.querySelectorAll("[role=tab]")];
    const next = all[(all.indexOf(event.target) + step + all.length) % all.length];
    next.focus();
    next.click();
  });
}

export function theme(next) {
  if (next) document.documentElement.dataset.theme = next;
  try {
    if (next) localStorage.setItem("zoo-studio-theme", next);
    else if (localStorage.getItem("zoo-studio-theme")) document.documentElement.dataset.theme = localStorage.getItem("zoo-studio-theme");
  } catch {
    // Without storage the choice lasts as long as the page.
  }
}

export const isDark = () => (document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
