// Saving a spec, writing a checkpoint, and exporting: long work reports its progress, and can be cancelled.

import { post, stream } from "./api.js";
import { bytes, h, plural, table } from "./dom.js";
import { close, message, show } from "./dialogs.js";

const select = (label, values, chosen) => {
  const menu = h("select", {}, values.map((value) => h("option", { value, selected: value === chosen }, value)));
  return [menu, h("label", {}, `${label} `, menu)];
};

// Runs long work: buttons follow, and the list of stages grows.
export async function run(name, data, { button, cancel, log, result, each, cancelled = "Cancelled; nothing was written." }) {
  button.disabled = true;
  cancel.hidden = false;
  log.replaceChildren(h("li", { class: "running", id: "starting" }, "load PyTorch"));
  result.replaceChildren();
  let last = "";
  try {
    await stream(name, data, (event) => {
      last = event.event;
      log.querySelector("#starting")?.remove();
      if (last === "progress") progress(event, log);
      else if (last === "cancelled") result.replaceChildren(h("p", { class: "bad" }, cancelled));
      else if (last === "failed") result.replaceChildren(h("p", { class: "bad message" }, event.message), ...(event.verification ? [verification(event.verification.comparisons)] : []));
      else each(event);
    });
  } catch (error) {
    result.replaceChildren(h("p", { class: "bad message" }, error.message));
  }
  log.querySelector("#starting")?.remove();
  for (const item of log.children) item.classList.remove("running");
  button.disabled = false;
  cancel.hidden = true;
}

export const cancelButton = () => h("button", { type: "button", hidden: true, on: { click: () => post("cancel", {}).catch(() => {}) } }, "Cancel");
export const stages = () => h("ol", { class: "stages", "aria-label": "Progress" });
const outcome = () => h("div", { class: "result", role: "status" });

// Two ways to keep the model: its spec as a file, and a checkpoint with weights.
export function saveDialog({ text, file, name, weights, sizes, done }) {
  const fault = message();
  const input = h("input", { type: "text", value: file, "aria-label": "File", autofocus: true });
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
  show("Save", h("h3", {}, "The spec, as YAML"), form, h("h3", {}, "A checkpoint, for transformers"), ...checkpointForm(text, name, weights, sizes));
  input.focus();
  input.select();
}

const ALONE = "transformers alone";

function checkpointForm(text, name, own, sizes) {
  const fault = message();
  const input = h("input", { type: "text", value: `build/${name}-checkpoint`, "aria-label": "Directory of the checkpoint" });
  const [dtype, dtypeLabel] = select("Type", ["fp32", "fp16", "bf16"], "fp32");
  const [weights, weightsLabel] = select("Weights", [...(own ? [own] : []), "random"], own || "random");
  const [code, codeLabel] = select("Loads with", [ALONE, "trust_remote_code"], ALONE);
  const size = h("p", { class: "quiet" });
  const [log, result, cancel] = [stages(), outcome(), cancelButton()];
  const button = h("button", { class: "primary", type: "submit" }, "Write checkpoint");
  let replace = false;
  const fresh = () => {
    replace = false;
    button.textContent = "Write checkpoint";
    fault.textContent = "";
    const row = sizes && sizes.find((each) => each.precision === dtype.value);
    size.textContent = row ? `Writes about ${bytes(row.bytes)}${weights.value === "random" ? ", drawn by the spec's recipe" : ""}.` : "";
  };
  for (const each of [input, dtype, weights, code]) each.addEventListener("input", fresh);
  const form = h("form", { id: "checkpoint", on: { submit: async (event) => {
    event.preventDefault();
    fault.textContent = "";
    const data = { text, directory: input.value.trim(), dtype: dtype.value, weights: weights.value, code: code.value !== ALONE, replace };
    await run("checkpoint", data, { button, cancel, log, result, each: (told) => {
      if (told.event === "exists") {
        fault.textContent = `${told.directory} is an earlier checkpoint.`;
        button.textContent = "Replace it";
        replace = true;
        return;
      }
      fresh();
      result.replaceChildren(
        h("p", { class: "good", id: "written" }, `✓ Written to ${told.directory}: ${plural(told.files.length, "file")}`),
        table("Files", ["file", "size"], told.files.map(([file, , shown]) => [file, shown])),
        h("p", { class: "quiet" }, "Load it with ", h("code", {}, `${told.loader}.from_pretrained("${told.directory}"${code.value === ALONE ? "" : ", trust_remote_code=True"})`)));
    } });
  } } },
  h("label", {}, "Directory, in the folder of the studio ", input), h("div", { class: "options" }, dtypeLabel, weightsLabel, codeLabel), size, fault, h("p", { class: "actions" }, button, cancel));
  fresh();
  return [form, log, result];
}

export function exportDialog({ text, name, start, weights: own, sizes }) {
  const [target, targetLabel] = select("Target", Object.keys(start.targets), "portable");
  const [precision, precisionLabel] = select("Precision", start.precisions, "fp32");
  const [layout, layoutLabel] = select("Layout", start.layouts, "onnx");
  const [weights, weightsLabel] = select("Weights", [...(own ? [own] : []), "random", "none"], own || "random");
  const size = h("p", { class: "quiet" });
  const [log, result, cancel] = [stages(), outcome(), cancelButton()];
  const button = h("button", { class: "primary", type: "submit" }, "Export and verify");
  const measure = () => {
    for (const option of precision.options) option.disabled = start.targets[target.value].includes(option.value);
    if (precision.selectedOptions[0].disabled) precision.value = "fp32";
    const row = sizes && sizes.find((each) => each.precision === precision.value);
    size.textContent = weights.value === "none" ? "Writes the graphs without weights." : row ? `Writes about ${bytes(row.bytes)} of weights${weights.value === "random" ? ", drawn by the spec's recipe" : ""}.` : "";
  };
  for (const menu of [target, precision, weights]) menu.addEventListener("change", measure);
  const form = h("form", { on: { submit: async (event) => {
    event.preventDefault();
    const options = { target: target.value, precision: precision.value, layout: layout.value, weights: weights.value };
    await run("export", { text, ...options }, { button, cancel, log, result, each: (told) => exported(told, result) });
  } } },
  h("div", { class: "options" }, targetLabel, precisionLabel, layoutLabel, weightsLabel), size, h("p", { class: "actions" }, button, cancel));
  show(`Export ${name}`, form, log, result);
  measure();
  button.focus();
}

// A line for each stage; its present step, which follows a colon, stays on the line.
function progress(event, log) {
  const [name, step] = event.name.split(": ");
  let item = log.lastElementChild;
  if (!item || item.dataset.name !== name) {
    if (item) item.classList.remove("running");
    item = h("li", { class: "running", dataset: { name } }, name, h("span", { class: "quiet" }));
    log.append(item);
    item.scrollIntoView({ block: "nearest" });
  }
  item.querySelector("span").textContent = step ? `: ${step}` : "";
  if (event.total) {
    const bar = item.querySelector("progress") || item.appendChild(h("progress", { max: 1 }));
    bar.value = event.done / event.total;
  }
}

function exported(event, result) {
  const done = event.verification;
  result.replaceChildren(
    h("p", { class: "good", id: "verdict" }, done ? `✓ Verified in ${done.where}: largest difference ${done.max_abs.toExponential(1)}` : "Written, not verified: there are no weights."),
    h("p", {}, "In ", h("code", {}, event.directory), `, ${plural(event.files.length, "file")}`),
    ...(event.summary ? [verification(event.summary)] : []),
    ...(event.rounding ? [h("p", { class: "how" }, event.rounding)] : []),
    table("Files", ["file", "size"], event.files.map(([name, , text]) => [name, text])),
    ...event.next.map((command) => h("p", { class: "quiet" }, "Next: ", h("code", {}, command))));
}

const verification = (comparisons) =>
  table("PyTorch against the files", ["case", "input", "output", "largest difference", "allowed", "verdict"],
    comparisons.map((each) => [each.case, each.shape, each.output, each.max_abs === null ? "not comparable" : each.max_abs.toExponential(1), each.tolerance.toExponential(1), h("span", { class: each.passed ? "good" : "bad" }, each.passed ? (each.rounding === null ? "equal" : "within rounding") : "differs")]),
    ["largest difference", "allowed"]);
