// The figures: one card each, which keeps its place while its content follows the edit.

import { bars, cacheCurve, keyOf, rooflineChart, treemap } from "./charts.js";
import { MeshCard } from "./mesh.js";
import { at, behind, bytes, count, flops, h, parameters, percent, percentText, plural, refill, seconds, signed, table, unitText, whole } from "./dom.js";

const STAGES = { prefill: "prompt", step: "one step", forward: "forward pass", encode: "encoder", see: "image encoder" };
const COLOURS = { positions: "position", "cross-attention": "attention", router: "feed-forward", experts: "feed-forward", norms: "norm" };
const colour = (role) => `var(--${COLOURS[role] || role})`;
const CARDS = [
  ["total", "Parameters"], ["base", "Against the base"], ["nearest", "Nearest published models"], ["flops", "FLOPs"],
  ["cache", "KV cache and states"], ["training", "Training memory"], ["roofline", "Roofline"], ["fits", "What fits where"], ["mesh", "On several devices"],
];

export class Figures {
  constructor({ jump, compare, measure, presets, devices }) {
    Object.assign(this, { jump, compare, measure, presets });
    this.device = devices.includes("h100") ? "h100" : devices[0];
    this.parts = {};
    this.cards = Object.fromEntries(
      CARDS.map(([id, title]) => {
        const body = h("div", { class: "body" });
        at("figures").append(h("section", { class: "card", id: `card-${id}`, "aria-label": title }, h("h2", {}, title), body));
        return [id, body];
      }));
    this.mesh = new MeshCard(this.cards.mesh, devices);
    this.byRole = h("div", {});
    this.baseMenu = h("select", { id: "base", "aria-label": "Base to compare with", on: { change: () => this.compare(this.baseMenu.value) } });
    this.differences = h("div", {}); // the menu of some hundred bases stays in the page, whose styles would be computed anew
    this.cards.base.append(h("p", { class: "choose" }, "Base ", this.baseMenu), this.differences);
  }

  bases(opened, chosen) {
    const own = opened.preset ? [] : [h("option", { value: "" }, `${opened.label} as opened`)];
    this.baseMenu.replaceChildren(...own, ...this.presets.map(([name]) => h("option", { value: name }, name)));
    this.baseMenu.value = chosen;
  }

  stale(is) {
    at("figures").classList.toggle("stale", is);
    at("picture").classList.toggle("stale", is);
  }

  show(part, data) {
    this.parts[part] = data;
    const draw = {
      counts: () => this.total(), comparison: () => this.against(), costs: () => [this.roles(), this.flops(), this.cache()],
      devices: () => [this.roofline(), this.fits()], training: () => this.training(), nearest: () => this.nearest(),
    }[part];
    if (draw) draw();
  }

  put(card, ...content) {
    const body = this.cards[card];
    refill(body, ...content);
    body.parentElement.hidden = !body.childNodes.length;
  }

  // The headline, which stays in sight on a small screen.
  totals() {
    const counts = this.parts.counts;
    const quantities = (this.parts.comparison || {}).quantities || [];
    const before = quantities.find((each) => each.name === "parameters");
    const change = before && before.a !== null && counts.parameters !== before.a ? ` (${signed(counts.parameters, before.a, parameters)})` : "";
    const text = `${whole(counts.parameters)} parameters${change}`;
    if (at("totals").textContent !== text) at("totals").textContent = text;
  }

  total() {
    const counts = this.parts.counts;
    const { published, expected } = counts;
    const lines = [];
    const compared = (built, stated, what) =>
      h("p", { class: built === stated ? "good check" : "quiet check" },
        built === stated ? `✓ ${what}: ${whole(stated)}` : `${what}: ${whole(stated)} (${signed(built, stated, whole)})`);
    if (published.parameters) lines.push(compared(counts.parameters, published.parameters, `Published for ${published.name}`));
    for (const each of expected) {
      lines.push(h("p", { class: each.met ? "good check" : "bad check" },
        each.met ? `✓ As the spec expects: ${whole(each.published)}` : `The spec expects ${whole(each.published)} (${signed(each.built, each.published, whole)})`));
    }
    const routed = counts.active !== counts.parameters;
    this.put("total",
      h("p", { class: "headline" }, h("b", { id: "count" }, whole(counts.parameters)), counts.parameters >= 1e4 && h("span", { class: "quiet" }, ` ${parameters(counts.parameters)}`)),
      routed && h("p", { class: "second" }, h("b", {}, whole(counts.active)), h("span", { class: "quiet" }, ` active per token, ${((100 * counts.active) / counts.parameters).toFixed(1)} %`)),
      lines,
      treemap(counts.treemap),
      this.byRole,
      how("Counted on the built modules, each tensor once, as zoo params does."));
    this.totals();
  }

  // The key of the treemap, which needs the costs.
  roles() {
    const { roles } = this.parts.costs;
    const all = roles.reduce((sum, role) => sum + role.parameters, 0);
    refill(this.byRole,
      keyOf(roles.map((role) => [role.name, colour(role.name), percentText(role.parameters / all)])),
      behind("Parameters by role", ["role", "parameters", "active per token"], () => roles.map((role) => [role.name, whole(role.parameters), whole(role.active)])));
  }

  against() {
    const { quantities, changes, more, sizes, name } = this.parts.comparison;
    this.baseMenu.title = `Base: ${name}`;
    const rows = quantities.map((each) => {
      const text = unitText(each.unit);
      const label = quantityText(each);
      const both = each.a !== null && each.b !== null;
      const tone = both && each.a !== each.b ? (each.b < each.a ? "less" : "more") : "";
      return [label, each.a === null ? "none" : text(each.a), each.b === null ? "none" : text(each.b),
        h("span", { class: tone }, both ? (each.a === each.b ? "same" : percent(each.b, each.a)) : "")];
    });
    refill(this.differences,
      changes.length
        ? h("ul", { class: "changes" }, changes.map((each) => this.change(each)), more ? h("li", { class: "quiet" }, `and ${more} more`) : null)
        : h("p", { class: "quiet" }, "No difference: edit the spec, or choose another base."),
      table(`Batch ${whole(sizes.batch)}, ${whole(sizes.length)} tokens, half precision`, ["", "base", "now", "change"], rows),
      how("As zoo diff: training memory is weights, gradients and Adam's state, without activations."));
    if (this.parts.counts) this.totals();
  }

  change(each) {
    const layers = each.layers ? h("span", { class: "quiet" }, ` in ${plural(each.layers, "layer")}`) : null;
    return h("li", { class: each.follows ? "follows" : "" },
      h("button", { type: "button", class: "jump", on: { click: () => this.jump(each.path) } }, each.where), " ",
      h("s", { title: each.full[0] }, each.a), " → ", h("b", { title: each.full[1] }, each.b), layers, each.follows ? h("span", { class: "quiet" }, " follows") : null);
  }

  nearest() {
    const data = this.parts.nearest;
    this.put("nearest",
      h("ol", { class: "near" }, data.map((each) =>
        h("li", {},
          h("p", {},
            h("button", { type: "button", class: "jump", title: `Compare with ${each.name}`, on: { click: () => this.compare(each.name) } }, each.name),
            h("span", { class: "quiet" }, ` ${[each.year, each.parameters && parameters(each.parameters)].filter(Boolean).join(" · ")}`),
            h("span", { class: "share" }, each.likeness === 1 ? "the same" : `${(100 * each.likeness).toFixed(0)} % alike`)),
          each.changes.length
            ? h("p", { class: "there" }, each.changes.map((change, i) => [i ? " · " : "", h("span", {}, `${change.where}: `, h("b", {}, change.b))]), each.more ? ` · ${each.more} more` : "")
            : null))),
      how("By the weighted share of keys and values that two specs have in common; the lines name what the published model does differently."));
  }

  flops() {
    const { stages, sizes, note } = this.parts.costs;
    const roles = [...new Set(Object.values(stages).flatMap((stage) => Object.keys(stage.roles)))];
    const groups = Object.entries(stages).map(([name, stage]) =>
      bars([{ name: `${STAGES[name] || name}, ${plural(stage.tokens, "token")}${name === "step" ? ` after ${whole(sizes.past)}` : ""}`, text: flops(stage.matmul),
        parts: Object.entries(stage.roles).map(([role, value]) => ({ name: role, value, text: flops(value), colour: colour(role) })) }], `${STAGES[name] || name}: ${flops(stage.matmul)}`));
    this.put("flops",
      groups,
      keyOf(roles.map((role) => [role, colour(role)])),
      behind("FLOPs of matrix products", ["", ...Object.keys(stages).map((name) => STAGES[name] || name)], () => [
        ...roles.map((role) => [role, ...Object.values(stages).map((stage) => (stage.roles[role] ? flops(stage.roles[role]) : ""))]),
        ["all", ...Object.values(stages).map((stage) => flops(stage.matmul))],
        ["outside matrix products", ...Object.values(stages).map((stage) => flops(stage.other))]]),
      note && h("p", { class: "bad" }, note),
      how("2 m n k for each matrix product of the traced graph, as zoo report; of experts only the routed ones."));
  }

  cache() {
    const { cache, sizes } = this.parts.costs;
    if (!cache) {
      this.put("cache", h("p", { class: "quiet" }, "An encoder keeps no cache."));
      return;
    }
    const tokens = Math.max(sizes.length, sizes.past);
    const notes = [];
    for (const group of cache.windows) if (group.window) notes.push(`${plural(group.layers, "layer")} keep${group.layers === 1 ? "s" : ""} ${whole(group.window)} tokens`);
    if (cache.form) notes.push(`${cache.form}; ${bytes(cache.latent_bytes_per_token)} per token where a runtime keeps latents`);
    if (cache.state_bytes) notes.push(`${bytes(cache.state_bytes)} of states, whatever the length`);
    if (cache.encoder_bytes_per_token) notes.push(`${bytes(cache.encoder_bytes_per_token)} per encoder token`);
    this.put("cache",
      h("p", { class: "headline small" }, h("b", {}, bytes(cache.at)), h("span", { class: "quiet" }, ` after ${plural(tokens, "token")}, batch ${whole(sizes.batch)} · ${bytes(cache.bytes_per_token)} per token`)),
      notes.length ? h("p", { class: "quiet" }, notes.join(" · ")) : null,
      cacheCurve(cache, tokens),
      cache.base && keyOf([["now", "var(--accent)"], ["base", "var(--quiet)"]]),
      behind("Cache by context", ["tokens", "now", ...(cache.base ? ["base"] : [])], () => cache.contexts.map((context, i) => [whole(context), bytes(cache.bytes[i]), ...(cache.base ? [bytes(cache.base[i])] : [])])),
      how(cache.held > cache.at ? `Windows keep only their tokens; the exported caches hold all: ${bytes(cache.held)}.` : "From the state that each mixer declares; shared caches count once."));
  }

  training() {
    const data = this.parts.training;
    const { sizes } = this.parts.costs;
    const state = [
      ["weights", data.state.weights, "var(--embedding)"], ["gradients", data.state.gradients, "var(--attention)"],
      ["Adam's moments", data.state.adam_moments, "var(--mixer)"], ["float32 weights", data.state.master_weights, "var(--norm)"],
    ];
    const row = (name, activations) => {
      const parts = [...state, ["activations", activations, "var(--feed-forward)"]];
      const total = parts.reduce((sum, each) => sum + each[1], 0);
      return { name, text: bytes(total), parts: parts.map(([title, value, tint]) => ({ name: title, value, text: bytes(value), colour: tint })) };
    };
    const rows = [row("fused attention", data.activations), row("separate steps", data.unfused), row("checkpointed layers", data.checkpointed)];
    this.put("training",
      bars(rows, "Training memory"),
      keyOf([...state.filter((each) => each[1]).map(([name, , tint]) => [name, tint]), ["activations", "var(--feed-forward)"]]),
      behind("Memory of a training step", ["", "bytes"], () => [
        ...state.map(([name, value]) => [name, bytes(value)]), ["activations, fused attention", bytes(data.activations)],
        ["activations, separate steps", bytes(data.unfused)], ["activations, checkpointed layers", bytes(data.checkpointed)],
        ["FLOPs", flops(data.matmul)], ["FLOPs, checkpointed", flops(data.matmul_checkpointed)]]),
      how(`${data.dtype}, batch ${whole(sizes.batch)}, ${whole(sizes.length)} tokens: tensors that autograd saves in the traced graph, and Adam's state. ${flops(data.matmul)} a step.`));
  }

  roofline() {
    if (!this.parts.devices || !this.parts.costs) return;
    const devices = this.parts.devices.roofline;
    const device = devices.find((each) => each.name === this.device) || devices[0];
    const menu = h("select", { "aria-label": "Device", on: { change: () => { this.device = menu.value; this.roofline(); at("card-roofline").querySelector("select").focus(); } } },
      devices.map((each) => h("option", { value: each.name, selected: each === device }, each.name)));
    const { stages } = this.parts.devices;
    const { precision } = this.parts.costs;
    const named = Object.fromEntries(Object.entries(stages).map(([name, stage]) => [STAGES[name] || name, stage]));
    this.put("roofline",
      h("p", { class: "choose" }, "Device ", menu, devices.some((each) => each.name === "this") ? null : this.measuring(), h("span", { class: "quiet" }, ` ${device.summary}${device.count > 1 ? ` · ${device.count} needed` : ""}`)),
      device.rate && rooflineChart(device, named),
      table(`At least, in ${precision}`, ["device", ...Object.keys(named).map((name) => name), "tokens/s"],
        devices.map((each) => [each.count > 1 ? `${each.count} × ${each.name}` : each.name,
          ...Object.keys(stages).map((name) => (each.roofs ? seconds(each.roofs[name].seconds) : "")),
          each.roofs ? count(Object.values(each.roofs).at(-1).tokens_per_second) : ""])),
      how("Lower bounds: matrix products at peak rate, weights and cache read once (Williams et al., 2009)."));
  }

  // The button that measures this machine, which then is a device in the roofline and in the table of what fits.
  measuring() {
    const button = h("button", { type: "button", id: "measure", title: "Measures memory, bandwidth and matrix products for about a second", on: { click: async () => {
      button.disabled = true;
      button.textContent = "Measuring…";
      this.device = "this";
      await this.measure();
    } } }, "Measure this machine");
    return button;
  }

  fits() {
    const rows = this.parts.devices.fits;
    const { sizes } = this.parts.costs;
    const cell = (each) => {
      if (!each.batch) return h("span", { class: "split", title: `${each.name} has no room for one sequence` }, "✗");
      const context = each.context === null ? "any context" : each.context ? `${whole(each.context)} tokens` : "no token";
      return h("span", { class: each.count === 1 ? "fit" : "split", title: `${each.count} needed; then up to ${plural(each.batch, "sequence")}, or one of ${context}` },
        each.count === 1 ? (each.batch >= 2 ** 40 ? "any" : count(each.batch)) : `${each.count} ×`);
    };
    this.put("fits",
      h("p", { class: "quiet" }, `The largest batch of ${whole(Math.max(sizes.length, sizes.past))} tokens on one device; N × is the number of devices that batch ${whole(sizes.batch)} needs.`),
      table("Devices, by precision of the weights", ["", ...rows.map((row) => row.precision)], [
        [h("span", { class: "quiet" }, "files"), ...rows.map((row) => h("small", { class: "quiet" }, bytes(row.bytes)))],
        ...rows[0].devices.map((device, i) => [device.name, ...rows.map((row) => cell(row.devices[i]))])]),
      how("Weights as zoo export stores them, caches in floating point, and the outputs of a step."));
  }
}

const how = (text) => h("p", { class: "how" }, text);

const QUANTITIES = { weights: "weights in fp16", training: "training state", state: "states" };
function quantityText({ name, tokens }) {
  if (tokens === null) return QUANTITIES[name] || name;
  const words = { step: "one step after", prefill: "prompt of", forward: "forward pass of", cache: "cache of" };
  return words[name] ? `${words[name]} ${whole(tokens)} tokens` : `${STAGES[name] || name}, ${whole(tokens)} tokens`;
}

