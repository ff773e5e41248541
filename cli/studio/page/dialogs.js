// The dialog box, and opening: presets, paths, hub ids, links, and files that are pasted, chosen or dropped.

import { post, postBytes } from "./api.js";
import { at, bytes, h, parameters } from "./dom.js";

const dialog = () => at("dialog");

export function show(title, ...content) {
  const box = dialog();
  box.replaceChildren(
    h("form", { method: "dialog", class: "dialog-head" }, h("h2", { id: "dialog-title" }, title), h("button", { "aria-label": "Close", class: "close" }, "✕")),
    ...content.filter(Boolean));
  box.setAttribute("aria-labelledby", "dialog-title");
  if (!box.open) box.showModal();
}

export const close = () => dialog().close();

export const message = () => h("p", { class: "bad message", role: "alert" });

// A name that is the words comes first, then one that begins with them, then short names that have them all.
function rank(name, words) {
  const whole = words.join("-");
  if (!whole || name === whole) return 0;
  if (name.startsWith(whole)) return 1;
  return words.every((word) => name.includes(word)) ? 2 + name.length / 1000 : 3;
}

// Presets by words, a path below the studio's folder, a link, or a config.
export function openDialog(start, opened) {
  const fault = message();
  const busy = h("p", { class: "quiet busy", role: "status" });
  const list = h("ul", { class: "presets", role: "listbox", "aria-label": "Presets" });
  const take = async (name, data) => {
    fault.textContent = "";
    busy.textContent = data.reference ? `Opening ${data.reference}…` : "Reading the config…";
    try {
      const spec = await post(name, data);
      if (!dialog().open) return; // closed meanwhile
      opened(spec);
      close();
    } catch (error) {
      fault.textContent = error.message;
    } finally {
      busy.textContent = "";
    }
  };
  const draw = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = start.presets.filter(([name, summary, , year, architecture]) => words.every((word) => `${name} ${summary} ${year} ${architecture}`.toLowerCase().includes(word)));
    const shown = found.map((each) => [rank(each[0], words), each]).sort(([x], [y]) => x - y).map(([, each]) => each).slice(0, 80);
    list.replaceChildren(
      ...shown.map(([name, summary, total, year], i) => // one stop of the Tab key: arrow keys move in the list
        h("li", { role: "presentation" }, h("button", { type: "button", role: "option", tabindex: i ? "-1" : "0", on: { click: () => take("open", { reference: name }) } },
          h("b", {}, name), h("span", { class: "quiet" }, ` ${[total && parameters(total), year].filter(Boolean).join(" · ")}`), h("small", {}, summary)))),
      ...(found.length > shown.length ? [h("li", { class: "quiet" }, `and ${found.length - shown.length} more: type to narrow them`)] : []),
      ...(found.length ? [] : [h("li", { class: "quiet" }, "No preset has these words. Enter opens them as a path or a hub id.")]));
  };
  const search = h("input", { type: "search", placeholder: `Search ${start.presets.length} presets, or type a path, ORG/NAME or a link`, "aria-label": "Preset, path, hub id or link", autofocus: true, on: {
    input: draw,
    keydown: (event) => {
      if (event.key === "ArrowDown" && list.querySelector("button")) {
        event.preventDefault();
        list.querySelector("button").focus();
      }
      if (event.key === "Escape") {
        event.preventDefault(); // which would clear the words first
        close();
      }
      if (event.key !== "Enter") return;
      event.preventDefault();
      const typed = search.value.trim();
      const first = list.querySelector("button b"); // unless what is typed is there, such as a checkpoint of that name
      if (typed) take("open", { reference: typed, otherwise: first && !/[/\\]|\.(ya?ml|json|gguf)$/.test(typed) ? first.textContent : "" });
    },
  } });
  list.addEventListener("keydown", (event) => {
    const item = event.target.closest("li");
    const next = { ArrowDown: item && item.nextElementSibling, ArrowUp: item && item.previousElementSibling }[event.key];
    if (!["ArrowDown", "ArrowUp"].includes(event.key)) return;
    event.preventDefault();
    const button = next && next.querySelector("button");
    if (button) button.focus();
    else if (event.key === "ArrowUp") search.focus();
  });
  const paste = h("textarea", { rows: 3, placeholder: "Paste a config.json or a spec", "aria-label": "Pasted config.json or spec", spellcheck: false, on: {
    input: () => paste.value.trim() && (isConfig(paste.value) ? take("import", { config: paste.value }) : (opened({ label: "a pasted spec", text: paste.value, preset: "", file: "", weights: "" }), close())),
  } });
  const file = h("input", { type: "file", accept: ".yaml,.yml,.json,.gguf", "aria-label": "File", on: { change: () => {
    fault.textContent = "";
    if (file.files[0]) readFile(file.files[0], opened, start.head).then(close, (error) => (fault.textContent = error.message));
  } } });
  show("Open", search, fault, busy, list,
    h("div", { class: "others" }, h("label", {}, "Paste ", paste), h("label", {}, "Or choose a spec, a config.json or a GGUF file ", file)),
    h("p", { class: "quiet" }, `Paths are relative to ${start.folder}: YAML files, checkpoints, GGUF files and exports. ORG/NAME is a repository of the Hugging Face hub, of which the config alone is fetched. A file may also be dropped on the page.`));
  draw();
  search.focus();
}

const LARGEST = 1_000_000;
const WEIGHTS = /\.(safetensors|bin|pt|pth|ckpt|onnx|onnx_data)$/i;

// Whether a text is a config of transformers rather than a spec.
export const isConfig = (text) => text.trimStart().startsWith("{") && /"(model_type|architectures|hidden_size|n_embd|d_model)"/.test(text) && !/^\s*\{\s*"?(name|extends)"?\s*:/.test(text);

// A dropped or chosen file: a spec, a config to import, or a GGUF file, of which the head alone is sent.
export async function readFile(file, opened, head) {
  if ((await file.slice(0, 4).text()) === "GGUF" || /\.gguf$/i.test(file.name)) {
    opened(await postBytes("gguf", { size: file.size, name: file.name }, file.slice(0, head)));
    return;
  }
  if (WEIGHTS.test(file.name)) throw new Error(`${file.name} has weights and no config.\n  Drop its config.json, or start zoo studio with its directory.`);
  if (file.size > LARGEST) throw new Error(`${file.name} has ${bytes(file.size)}; a spec or a config has at most 1 MB.`);
  const text = await file.text();
  if (/[\0\uFFFD]/.test(text)) throw new Error(`${file.name} is not a text file.\n  Use a spec, a config.json or a GGUF file.`);
  if (text.trimStart().startsWith("{") && !/\.ya?ml$/i.test(file.name)) opened(await post("import", { config: text }));
  else opened({ label: file.name, text, preset: "", file: "", weights: "" });
}
