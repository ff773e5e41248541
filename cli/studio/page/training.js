// A short training of the spec and its base on a toy task, with live curves.

import { lossCurves, keyOf } from "./charts.js";
import { show } from "./dialogs.js";
import { behind, h, parameters, table, whole } from "./dom.js";
import { cancelButton, run, stages } from "./work.js";

const SMALL = 3_000_000;
const TASKS = { reverse: "reverse: write a sequence backwards", copy: "copy: repeat a sequence", recall: "recall: find the value of a key", addition: "addition: add two numbers" };

export function trainingDialog({ text, base, baseText, names, parameters: sizes, same, start }) {
  const large = Math.max(...sizes) > SMALL;
  const number = (label, value, least, most, hint) => {
    const input = h("input", { type: "number", min: String(least), max: String(most), step: "1", value: String(value), placeholder: "as is", "aria-label": label, title: hint });
    return [input, h("label", {}, `${label} `, input)];
  };
  const task = h("select", { "aria-label": "Task" }, ["reverse", ...start.tasks.filter((name) => name !== "reverse")].map((name) => h("option", { value: name }, TASKS[name] || name)));
  const [steps, stepsLabel] = number("Steps", 200, 1, 5000, "Training steps");
  const [layers, layersLabel] = number("Layers", large ? 2 : "", 1, 1000, "Reduce each stack to this depth; empty: as it is");
  const [width, widthLabel] = number("Width", large ? 64 : "", 8, 65536, "Scale both models to this width; empty: as it is");
  const picture = h("div", { id: "losses" });
  const log = stages();
  const result = h("div", { class: "result", role: "status" });
  const cancel = cancelButton();
  const button = h("button", { class: "primary", type: "submit" }, "Train both");
  const form = h("form", { id: "training", on: { submit: async (event) => {
    event.preventDefault();
    picture.replaceChildren();
    const whole_ = (input) => (input.value ? Math.round(Number(input.value)) : null);
    const data = { text, base, base_text: baseText, task: task.value, steps: whole_(steps) || 200 };
    for (const [name, input] of [["layers", layers], ["width", width]]) if (input.value) data[name] = whole_(input);
    const curves = new Map();
    let models = null;
    const draw = () => picture.replaceChildren(
      lossCurves([...curves.values()], models.steps, models.chance),
      keyOf(models.models.map((each) => [`${each.label === "base" ? "base: " : "now: "}${names[each.label]}`, each.label === "base" ? "var(--quiet)" : "var(--accent)", `${parameters(each.parameters)} parameters`])));
    await run("training", data, { button, cancel, log, result, cancelled: "Cancelled. The same training goes on from its last saved step.", each: (told) => {
      if (told.event === "models") {
        models = told;
        for (const each of told.models) curves.set(each.label, { name: each.label, base: each.label === "base", points: [] });
      } else if (told.event === "steps") {
        for (const [label, step, loss] of told.points) if (Number.isFinite(loss)) curves.get(label).points.push([step, loss]);
      } else {
        for (const each of told.results) if (each.kept) curves.get(each.label).points = each.curve.filter(([, loss]) => Number.isFinite(loss));
        finished(told, names, result);
      }
      draw();
    } });
  } } },
  h("label", { class: "wide" }, "Task ", task), h("div", { class: "options" }, stepsLabel, layersLabel, widthLabel),
  h("p", { class: "actions" }, button, cancel));
  const edited = names.now === names.base ? `${names.now} as edited` : names.now;
  show(same ? `Train ${names.now}` : `Train ${edited} against ${names.base}`,
    same && h("p", { class: "bad" }, "The spec is the same as its base: edit it, or choose another base, to see a difference."),
    h("p", { class: "quiet" }, "Both models learn the same small task from the same data, one after the other, as zoo compare trains them. ", large ? "They are reduced, so that it takes seconds." : "They are small enough to train as they are."),
    form, log, picture, result);
  button.focus();
}

function finished(told, names, result) {
  const show_ = (value, digits) => (value === null ? "diverged" : value.toFixed(digits));
  const [base, now] = told.results;
  const wrong = told.results.filter((each) => each.sees_answers);
  const now_ = names.now === names.base ? `${names.now} as edited` : names.now;
  const better = base.loss === null || now.loss === null ? "" : now.loss < base.loss ? "learns it better" : now.loss > base.loss ? "learns it worse" : "learns it equally well";
  result.replaceChildren(
    h("p", { id: "learned", class: wrong.length ? "bad" : better.endsWith("better") ? "good" : "" }, wrong.length ? `${wrong.map((each) => names[each.label]).join(" and ")} can see the answers: the mask or the mixer leaks.` : better && `${now_} ${better} in ${whole(now.diverged_at || (base.scores.at(-1) || { step: 0 }).step)} steps.`),
    table(`On ${told.task}, held-out passages`, ["", "parameters", "loss", "accuracy", "solved at", "steps/s"],
      told.results.map((each) => [`${each.label}: ${names[each.label]}`, parameters(each.parameters), show_(each.loss, 3), each.accuracy === null ? "" : `${(100 * each.accuracy).toFixed(1)} %`, each.solved_at === null ? "no" : whole(each.solved_at), each.kept ? "saved" : each.steps_per_second.toFixed(1)])),
    behind("Losses", ["step", ...told.results.map((each) => each.label)], () => told.results[0].curve.map(([step, loss], i) => [whole(step), show_(loss, 3), told.results[1].curve[i] ? show_(told.results[1].curve[i][1], 3) : ""])),
    h("p", { class: "how" }, "One seed, one learning rate, a toy task: a hint, not a ranking. Results are kept in build/compare."));
}
