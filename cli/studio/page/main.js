// The studio: every edit is one question, whose parts are shown as they come.

import { get, post, stream } from "./api.js";
import { Controls } from "./controls.js";
import { isConfig, openDialog, readFile } from "./dialogs.js";
import { at, h, plural, toast, whole } from "./dom.js";
import { Drawing } from "./drawing.js";
import { Editor } from "./editor.js";
import { Figures } from "./figures.js";
import { fields, fragment, unpacked } from "./link.js";
import { isDark, pane, tabs, theme } from "./panes.js";
import { Schema } from "./schema.js";
import { trainingDialog } from "./training.js";
import { exportDialog, saveDialog } from "./work.js";

const state = { opened: null, base: "", baseText: "", spec: null, valid: true, changes: [], asked: 0, answered: 0, problems: null };
const nonce = document.querySelector("meta[name=nonce]").content;
let aborter = null;
const PAUSE = 25; // milliseconds, in a burst of typing
const KEPT = 250; // milliseconds without an answer after which the address holds the spec: browsers limit how often it may change
const SLOW = 400; // milliseconds after which the page shows that it waits for an answer
const LEFT = "left"; // the page as it was left: a reload shows it, also if the address does not hold the last edit yet
let waiting = 0;
let showing = 0;
let remembering = 0;
let slow = 0;
let edits = Promise.resolve();

const start = await get("start");
const schema = new Schema(await get("schema"));

const editor = new Editor(at("editor"), {
  nonce, schema, presets: start.presets,
  changed: () => soon(),
  moved: (path) => {
    if (state.jumping) return;
    editor && drawing.link(path);
  },
});
const drawing = new Drawing((path) => jump(path, false));
const figures = new Figures({
  jump: (path) => jump(path, true), compare: (name) => compare(name), measure: () => measure(), presets: start.presets, devices: start.devices,
});
const controls = new Controls(schema, {
  set: (path, value) => edit("set", { path, value }),
  remove: (path) => edit("remove", { path }),
  step: (path, value, direction) => edit("step", { path, value, direction }),
  jump: (path) => {
    view("yaml");
    jump(path, true);
  },
});

// Asks at once where nothing is asked, and else, as in a burst of typing, shortly after the last key: a question that is overtaken ends.
function soon() {
  const [undone, redone] = editor.depths();
  at("undo").disabled = !undone;
  at("redo").disabled = !redone;
  clearTimeout(waiting);
  waiting = setTimeout(ask, state.answered === state.asked ? 0 : PAUSE);
}

const number = (id) => (at(id).value ? Math.max(1, Math.round(Number(at(id).value))) : null);

async function ask() {
  clearTimeout(waiting);
  clearTimeout(remembering);
  if (aborter) aborter.abort();
  aborter = new AbortController();
  const mine = (state.asked += 1);
  const text = editor.text;
  performance.clearMarks(); // of the parts of the answer before: see the benchmark
  const began = performance.now();
  const question = { text, base: state.base, base_text: state.base ? "" : state.baseText, batch: number("batch") ?? 1, length: number("length"), precision: at("precision").value };
  if (question.length === null) delete question.length;
  document.body.dataset.asked = String(mine);
  clearTimeout(slow);
  slow = setTimeout(() => document.body.classList.add("asking"), SLOW);
  try {
    await stream("answer", question, ({ part, data }) => {
      if (mine !== state.asked) return;
      show(part, data, text);
      performance.mark(part);
      if (part === "counts" || part === "problems") document.body.dataset.first = String(Math.round(performance.now() - began));
    }, aborter.signal);
    if (mine === state.asked) {
      state.answered = mine;
      document.body.dataset.milliseconds = String(Math.round(performance.now() - began));
      document.body.dataset.answered = String(mine);
      remembering = setTimeout(() => remember(text), KEPT);
      if (state.valid) figures.mesh.follow(question);
    }
  } catch (error) {
    if (error.name !== "AbortError" && mine === state.asked) toast(lost(error), true);
  } finally {
    if (mine === state.asked) {
      clearTimeout(slow);
      document.body.classList.remove("asking");
    }
  }
}

const lost = (error) => (error instanceof TypeError ? "The studio's server does not answer: start zoo studio again." : error.message);

function show(part, data, text) {
  if (part === "problems") {
    problems(data, text);
    return;
  }
  if (part === "fault") {
    toast(data.message, true);
    return;
  }
  if (part === "spec") {
    state.spec = data;
    state.spans = data.spans;
    state.valid = true;
    problems([], text);
    controls.show(data);
    const title = `${data.name} · zoo studio`;
    if (document.title !== title) document.title = title;
    at("length").max = data.context || "";
    at("length").disabled = data.fixed_length;
    lengths(data.context);
    return;
  }
  if (part === "drawing") {
    if (!drawing.show(data, state.sizes)) return;
    drawing.mark(state.changes);
    drawing.link(editor.path());
    return;
  }
  if (part === "comparison") {
    state.changes = data.changes.map((each) => each.path);
    drawing.mark(state.changes);
    editor.mark(data.changes.map((each) => (exact(each.path) || [])[0]).filter(Boolean));
  }
  if (part === "costs") {
    state.sizes = data.sizes;
    at("length").placeholder = String(data.sizes.length);
    if (data.clamped) toast(`Length cut to the context, ${whole(data.sizes.length)} tokens.`);
    drawing.size(data.sizes);
  }
  figures.show(part, data);
}

function lengths(context) {
  if (context === state.longest) return;
  state.longest = context;
  const values = [128, 512, 1024, 2048, 4096, 8192, 32768, 131072].filter((value) => !context || value < context);
  at("lengths").replaceChildren(...[...values, ...(context ? [context] : [])].map((value) => h("option", { value: String(value) })));
}

function problems(found, text) {
  if (text === editor.text) editor.diagnose(found); // also where nothing else changes: the answer before may have come after an edit
  if (!found.length && state.problems && !state.problems.length) return;
  state.problems = found;
  state.valid = !found.length;
  figures.stale(found.length > 0);
  at("view-controls").disabled = found.length > 0 && !state.spec;
  const box = at("problems");
  clearTimeout(showing);
  if (!found.length) box.classList.remove("shown");
  else showing = setTimeout(() => box.classList.add("shown"), box.classList.contains("shown") ? 0 : 300); // not for a half-typed key
  box.replaceChildren(
    ...(found.length && isConfig(text) ? [h("p", { class: "fixes" }, "This looks like a config.json. ", h("button", { type: "button", class: "fix", on: { click: () => importText(text) } }, "Import it as a spec"))] : []),
    ...(found.length ? [h("h3", {}, plural(found.length, "problem"), h("span", { class: "quiet" }, state.spec ? " · the figures are those of the last spec that works" : ""))] : []),
    ...found.slice(0, 12).map((problem) =>
      h("div", { class: "problem" },
        h("button", { type: "button", class: "jump", on: { click: () => { view("yaml"); editor.reveal(problem.line, problem.line, true); } } }, `${problem.where || `line ${problem.line}`}`),
        h("span", {}, ` ${problem.message}`, "value" in problem && problem.value !== undefined ? h("span", { class: "quiet" }, " · value: ", h("code", {}, JSON.stringify(problem.value))) : ""),
        problem.fixes.length
          ? h("p", { class: "fixes" }, problem.fixes.map((fix) => h("button", { type: "button", class: "fix", on: { click: () => fixed(fix.text) } }, fix.label)))
          : problem.remedy ? h("p", { class: "quiet" }, problem.remedy) : null)));
}

// Its button goes away, so that the focus moves to the text.
function fixed(text) {
  editor.put(text);
  if (at("yaml").hidden) at("view-controls").focus();
  else editor.focus();
}

// One after the other: each changes the text that the one before has made, or that was typed meanwhile.
function edit(kind, data) {
  edits = edits.then(() => edited(kind, data));
}

async function edited(kind, data) {
  const { text } = editor;
  try {
    const answer = await post(kind, { text, ...data });
    if (editor.text !== text) await edited(kind, data);
    else if (answer.text === null) toast(`No ${data.direction > 0 ? "larger" : "smaller"} value near ${data.value} works.`);
    else editor.put(answer.text);
  } catch (error) {
    toast(lost(error), true);
  }
}

const exact = (path) => {
  const wanted = JSON.stringify(path);
  const found = (state.spans || []).find(([each]) => JSON.stringify(each) === wanted);
  return found && [found[1], found[2]];
};

// Scrolls to the keys of a path, or of the nearest part around it that the text states.
function jump(path, focus) {
  for (let depth = path.length; depth > 0; depth -= 1) {
    const lines = exact(path.slice(0, depth));
    if (!lines) continue;
    const alone = matchMedia("(max-width: 900px)").matches; // one pane at a time
    if (alone) pane("spec");
    if (at("yaml").hidden) controls.reveal(path, focus || alone);
    else {
      state.jumping = true;
      editor.reveal(...lines, focus || alone);
      state.jumping = false;
    }
    drawing.link(path);
    return;
  }
  toast(`${path.join(".")} is not stated in the text: it has its default.`);
}

async function importText(text) {
  try {
    opened(await post("import", { config: text }));
  } catch (error) {
    toast(lost(error), true);
  }
}

async function measure() {
  try {
    await post("measure", {});
  } catch (error) {
    toast(lost(error), true);
  }
  ask();
}

function compare(name) {
  state.base = name;
  figures.bases(state.opened, name);
  ask();
}

function opened(data, put = true) {
  state.opened = data;
  state.base = data.preset;
  state.baseText = data.text;
  label();
  figures.bases(data, data.preset);
  if (put) editor.put(data.text);
  if (data.skipped && data.skipped.length) toast(`Opened without fields that transformers does not have: ${data.skipped.join(", ")}`);
  ask();
}

function label() {
  const { file, label: name, weights } = state.opened;
  at("label").replaceChildren(file || name, weights ? h("span", { class: "quiet" }, " with weights") : "");
  at("label").title = weights ? `With the weights of ${weights}` : file || name;
}

// What the address holds besides the spec.
function sizesAndBase() {
  const { preset, file, weights } = state.opened;
  return { base: state.base, opened: preset, file, weights, batch: at("batch").value === "1" ? "" : at("batch").value, length: at("length").value, precision: at("precision").value === "fp16" ? "" : at("precision").value };
}

async function remember(text) {
  clearTimeout(remembering);
  const { answered } = state;
  history.replaceState(null, "", `${location.pathname}#${await fragment(text, sizesAndBase())}`);
  state.address = location.href;
  document.body.dataset.remembered = String(answered);
}

async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    toast(`Copied: ${what || text}`);
  } catch {
    prompt("Copy this:", text);
  }
}

function view(name) {
  for (const each of ["yaml", "controls"]) {
    at(each).hidden = each !== name;
    at(`view-${each}`).setAttribute("aria-selected", String(each === name));
    at(`view-${each}`).tabIndex = each === name ? 0 : -1;
  }
  if (name === "controls" && state.spec) controls.show(state.spec);
}

function wire() {
  const click = (id, listener) => at(id).addEventListener("click", listener);
  click("open", () => openDialog(start, opened));
  click("undo", () => editor.undo());
  click("redo", () => editor.redo());
  const sizes = () => (figures.parts.devices || {}).fits;
  const working = (act) => () => (state.valid && state.spec ? act() : toast("Fix the problems of the spec first.", true));
  click("save", working(() => saveDialog({
    text: editor.text, file: state.opened.file || `${state.spec.name}.yaml`, name: state.spec.name, weights: state.opened.weights, sizes: sizes(),
    done: (file) => {
      state.opened = { ...state.opened, file };
      label();
      remember(editor.text);
      toast(`Saved ${file}`);
    },
  })));
  click("export", working(() => exportDialog({ text: editor.text, name: state.spec.name, start, weights: state.opened.weights, sizes: sizes() })));
  click("train", working(() => {
    const before = (figures.parts.comparison.quantities.find((each) => each.name === "parameters") || {}).a || 0;
    trainingDialog({
      text: editor.text, base: state.base, baseText: state.base ? "" : state.baseText, start,
      names: { now: state.spec.name, base: state.base || `${state.opened.label} as opened` }, parameters: [figures.parts.counts.parameters, before], same: !state.changes.length,
    });
  }));
  click("copy-link", async () => {
    await remember(editor.text);
    copy(location.href, "an address with this spec; zoo studio ADDRESS opens it elsewhere");
  });
  click("copy-command", async () => {
    try {
      const { preset, file, weights } = state.opened;
      const { command, unsaved } = await post("command", { text: editor.text, preset: preset || state.base, file, weights });
      const short = command.length > 90 ? `${command.slice(0, 87)}…` : command;
      copy(command, unsaved ? `${short}  (save the spec as ${unsaved} first)` : short);
    } catch (error) {
      toast(lost(error), true);
    }
  });
  click("theme", () => theme(isDark() ? "light" : "dark"));
  for (const each of ["yaml", "controls"]) click(`view-${each}`, () => view(each));
  for (const each of ["spec", "drawing", "figures"]) click(`tab-${each}`, () => pane(each));
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault(); // the address holds the spec
    pane("figures");
    at("figures").focus();
  });
  document.querySelectorAll("[role=tablist]").forEach(tabs);
  at("precision").append(...start.precisions.map((name) => h("option", { value: name, selected: name === "fp16" }, name)));
  for (const id of ["batch", "length", "precision"]) at(id).addEventListener("input", soon);
  document.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || at("dialog").open) return;
    const key = event.key.toLowerCase();
    const listener = { s: () => at("save").click(), o: () => at("open").click() }[key];
    const { activeElement } = document;
    const outside = !at("editor").contains(activeElement) && (!/^(INPUT|TEXTAREA)$/.test(activeElement.tagName) || controls.holds(activeElement));
    if (listener) {
      event.preventDefault();
      listener();
    } else if (key === "z" && outside) {
      event.preventDefault();
      if (event.shiftKey) editor.redo();
      else editor.undo();
    }
  });
  addEventListener("hashchange", () => location.reload()); // another link in the same tab
  addEventListener("pagehide", () => sessionStorage.setItem(LEFT, JSON.stringify({ address: state.address, text: editor.text, rest: sizesAndBase() })));
  document.addEventListener("paste", (event) => {
    const text = event.clipboardData.getData("text");
    if (event.target.closest("input, textarea, #editor, dialog") || !isConfig(text)) return;
    event.preventDefault();
    importText(text);
  });
  document.addEventListener("dragover", (event) => {
    event.preventDefault();
    document.body.classList.toggle("dropping", event.dataTransfer.types.includes("Files"));
  });
  document.addEventListener("dragleave", (event) => event.relatedTarget || document.body.classList.remove("dropping"));
  document.addEventListener("drop", (event) => {
    document.body.classList.remove("dropping");
    const file = event.dataTransfer.files[0];
    if (!file) return;
    event.preventDefault();
    readFile(file, opened, start.head).catch((error) => toast(error.message, true));
  });
}

async function begin() {
  theme();
  wire();
  pane("spec");
  state.address = location.href;
  const left = JSON.parse(sessionStorage.getItem(LEFT));
  const reloaded = left !== null && left.address === location.href;
  const given = reloaded ? left.rest : fields();
  for (const id of ["batch", "length", "precision"]) if (given[id]) at(id).value = given[id];
  let shared = reloaded ? left.text : null;
  if (given.spec) {
    try {
      shared = await unpacked(given.spec);
    } catch {
      toast("The address holds no spec that can be read.", true);
    }
  }
  editor.begin(shared ?? start.opened.text);
  opened(start.opened, false);
  if (shared !== null && (shared !== start.opened.text || given.base !== start.opened.preset)) {
    const known = (name) => start.presets.some(([each]) => each === name);
    const name = known(given.opened) ? given.opened : "";
    const weights = start.weights.includes(given.weights) ? given.weights : "";
    state.opened = { label: name || weights || "a shared spec", preset: name, file: given.file || "", weights, text: shared };
    state.base = known(given.base) ? given.base : "";
    state.baseText = shared;
    label();
    figures.bases(state.opened, state.base);
    ask();
  }
  document.body.dataset.ready = "true";
}

begin();
