// The dialogs: open, save, and export with its progress and verification.

import { post, stream } from "./api.js";
import { at, bytes, h, parameters, plural, table } from "./dom.js";

const dialog = () => at("dialog");

function show(title, ...content) {
  const box = dialog();
  box.replaceChildren(
    h("form", { method: "dialog", class: "dialog-head" }, h("h2", { id: "dialog-title" }, title), h("button", { "aria-label": "Close", class: "close" }, "✕")),
    ...content);
  box.setAttribute("aria-labelledby", "dialog-title");
  if (!box.open) box.showModal();
}

export const close = () => dialog().close();

const message = () => h("p", { class: "bad message", role: "alert" });

// Presets by words, a path below the studio's folder, a link, or a config.
export function openDialog(start, opened) {
  const fault = message();
  const list = h("ul", { class: "presets", role: "listbox", "aria-label": "Presets" });
  const take = async (name, data) => {
    fault.textContent = "";
    try {
      opened(await post(name, data));
      close();
    } catch (error) {
      fault.textContent = error.message;
    }
  };
  const draw = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = start.presets.filter(([name, summary, , year, architecture]) => words.every((word) => `${name} ${summary} ${year} ${architecture}`.toLowerCase().includes(word)));
    const exact = found.filter(([name]) => words.length === 1 && name.startsWith(words[0]));
    const shown = [...exact, ...found.filter((each) => !exact.includes(each))].slice(0, 80);
    list.replaceChildren(
      ...shown.map(([name, summary, total, year]) =>
        h("li", {}, h("button", { type: "button", role: "option", on: { click: () => take("open", { reference: name }) } },
          h("b", {}, name), h("span", { class: "quiet" }, ` ${[total && parameters(total), year].filter(Boolean).join(" · ")}`), h("small", {}, summary)))),
      ...(found.length > shown.length ? [h("li", { class: "quiet" }, `and ${found.length - shown.length} more: type to narrow them`)] : []),
      ...(found.length ? [] : [h("li", { class: "quiet" }, "No preset has these words. Enter opens it as a path.")]));
  };
  const search = h("input", { type: "search", placeholder: `Search ${start.presets.length} presets, or type a path or a link`, "aria-label": "Preset, path or link", autofocus: true, on: {
    input: draw,
    keydown: (event) => {
      if (event.key === "ArrowDown" && list.querySelector("button")) {
        event.preventDefault();
        list.querySelector("button").focus();
      }
      if (event.key !== "Enter") return;
      event.preventDefault();
      const typed = search.value.trim();
      const known = start.presets.some(([name]) => name === typed);
      const first = list.querySelector("button b");
      if (typed) take("open", { reference: known || !first || /[/\\]|\.(ya?ml|json|gguf)$/.test(typed) ? typed : first.textContent });
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
    input: () => paste.value.trim() && (paste.value.trim().startsWith("{") ? take("import", { config: paste.value }) : (opened({ label: "a pasted spec", text: paste.value, preset: "", file: "" }), close())),
  } });
  const file = h("input", { type: "file", accept: ".yaml,.yml,.json", "aria-label": "File", on: { change: () => file.files[0] && readFile(file.files[0], opened).then(close, (error) => (fault.textContent = error.message)) } });
  show("Open", search, fault, list,
    h("div", { class: "others" }, h("label", {}, "Paste ", paste), h("label", {}, "Or choose a YAML file or a config.json ", file)),
    h("p", { class: "quiet" }, `Paths are relative to ${start.folder}: YAML files, checkpoints and exports. A file may also be dropped on the page.`));
  draw();
  search.focus();
}

const LARGEST = 1_000_000;

// A dropped or chosen file: a spec, or a config to import.
export async function readFile(file, opened) {
  if (file.size > LARGEST) throw new Error(`${file.name} has ${bytes(file.size)}; a spec or a config has at most 1 MB.`);
  const text = await file.text();
  if (text.trimStart().startsWith("{") && !/\.ya?ml$/.test(file.name)) opened(await post("import", { config: text }));
  else opened({ label: file.name, text, preset: "", file: "" });
}

export function saveDialog(text, name, done) {
  const fault = message();
  const input = h("input", { type: "text", value: name, "aria-label": "File", autofocus: true });
  let replace = false;
  const button = h("button", { class: "primary", type: "submit" }, "Save");
  const form = h("form", { on: { submit: async (event) => {
    event.preventDefault();
    try {
      const answer = await post("save", { text, file: input.value.trim(), replace });
      if (answer.exists) {
        fault.textContent = `${answer.file} exists.`;
        button.textContent = "Replace it";
        replace = true;
        return;
      }
      close();
      done(answer.file);
    } catch (error) {
      fault.textContent = error.message;
    }
  } } }, h("label", {}, "File, in the folder of the studio ", input), fault, h("p", { class: "actions" }, button));
  input.addEventListener("input", () => {
    replace = false;
    button.textContent = "Save";
  });
  show("Save", form);
  input.focus();
  input.select();
}

export function exportDialog(text, name, start, fits) {
  const select = (label, values, chosen) => {
    const menu = h("select", {}, values.map((value) => h("option", { value, selected: value === chosen }, value)));
    return [menu, h("label", {}, `${label} `, menu)];
  };
  const [target, targetLabel] = select("Target", Object.keys(start.targets), "portable");
  const [precision, precisionLabel] = select("Precision", start.precisions, "fp32");
  const [layout, layoutLabel] = select("Layout", start.layouts, "onnx");
  const [weights, weightsLabel] = select("Weights", ["random", "none"], "random");
  const size = h("p", { class: "quiet" });
  const log = h("ol", { class: "stages", "aria-label": "Progress" });
  const result = h("div", { class: "result", role: "status" });
  const button = h("button", { class: "primary", type: "submit" }, "Export and verify");
  const cancel = h("button", { type: "button", hidden: true, on: { click: () => post("cancel", {}).catch(() => {}) } }, "Cancel");
  const measure = () => {
    for (const option of precision.options) option.disabled = start.targets[target.value].includes(option.value);
    if (precision.selectedOptions[0].disabled) precision.value = "fp32";
    const row = fits && fits.find((each) => each.precision === precision.value);
    size.textContent = weights.value === "none" ? "Writes the graphs without weights." : row ? `Writes about ${bytes(row.bytes)} of weights, drawn by the spec's recipe.` : "";
  };
  for (const menu of [target, precision, weights]) menu.addEventListener("change", measure);
  const form = h("form", { on: { submit: async (event) => {
    event.preventDefault();
    button.disabled = true;
    cancel.hidden = false;
    log.replaceChildren();
    result.replaceChildren();
    const options = { target: target.value, precision: precision.value, layout: layout.value, weights: weights.value };
    try {
      await stream("export", { text, options }, (event_) => progress(event_, log, result));
      if (!result.childNodes.length) result.replaceChildren(h("p", { class: "bad" }, "Cancelled; nothing was written."));
    } catch (error) {
      result.replaceChildren(h("p", { class: "bad message" }, error.message));
    }
    for (const item of log.children) item.classList.remove("running");
    button.disabled = false;
    cancel.hidden = true;
  } } },
  h("div", { class: "options" }, targetLabel, precisionLabel, layoutLabel, weightsLabel), size, h("p", { class: "actions" }, button, cancel));
  show(`Export ${name}`, form, log, result);
  measure();
  button.focus();
}

function progress(event, log, result) {
  if (event.event === "progress") {
    let item = log.lastElementChild;
    if (!item || item.dataset.name !== event.name) {
      if (item) item.classList.remove("running");
      item = h("li", { class: "running", dataset: { name: event.name } }, event.name);
      log.append(item);
      item.scrollIntoView({ block: "nearest" });
    }
    if (event.total) {
      const bar = item.querySelector("progress") || item.appendChild(h("progress", { max: 1 }));
      bar.value = event.done / event.total;
    }
    return;
  }
  if (event.event === "failed") {
    result.replaceChildren(h("p", { class: "bad message" }, event.message), ...(event.verification ? [verification(event.verification.comparisons)] : []));
    return;
  }
  const done = event.verification;
  result.replaceChildren(
    h("p", { class: "good", id: "verdict" }, done ? `✓ Verified in ${done.where}: largest difference ${done.max_abs.toExponential(1)}` : "Written, not verified: there are no weights."),
    h("p", {}, "In ", h("code", {}, event.directory), `, ${plural(event.files.length, "file")}`),
    ...(event.summary ? [verification(event.summary)] : []),
    table("Files", ["file", "size"], event.files.map(([name, , text]) => [name, text])),
    h("p", { class: "quiet" }, "Next: ", h("code", {}, `zoo run ${event.directory}`), " or ", h("code", {}, `zoo bench ${event.directory}`)));
}

const verification = (comparisons) =>
  table("PyTorch against the files", ["case", "input", "output", "largest difference", "allowed", "verdict"],
    comparisons.map((each) => [each.case, each.shape, each.output, each.max_abs === null ? "not comparable" : each.max_abs.toExponential(1), each.tolerance.toExponential(1), h("span", { class: each.passed ? "good" : "bad" }, each.passed ? (each.rounding === null ? "equal" : "within rounding") : "differs")]),
    ["largest difference", "allowed"]);
