// The card of several devices: asked for once it is in sight, since a large model takes a moment.

import { post } from "./api.js";
import { bars, keyOf } from "./charts.js";
import { behind, bytes, h, percentText, seconds, table, whole } from "./dom.js";

const TRAINING = [
  ["weights", "weights", "embedding"], ["gradients", "gradients", "attention"], ["Adam's moments", "adam_moments", "mixer"],
  ["float32 weights", "master_weights", "norm"], ["gathered blocks", "gathered_blocks", "router"], ["activations", "activations", "feed-forward"],
];
const SERVING = [["weights", "weights", "embedding"], ["cache", "cache", "position"]];
const splitText = ({ mesh }) => Object.entries(mesh).map(([name, degree]) => `${name} ${degree}`).join(" · ");
const verdict = (split) => (split.fits ? "trains" : split.fits_serving ? "serves" : "no room");

export class MeshCard {
  constructor(body, devices) {
    this.device = devices.includes("h100") ? "h100" : devices[0];
    this.devices = devices;
    this.number = 8;
    this.chosen = "";
    this.wanted = null; // the question that is not asked yet
    this.visible = false;
    new IntersectionObserver((entries) => {
      this.visible = entries.at(-1).isIntersecting;
      this.ask();
    }).observe(body.parentElement);
    this.number_ = h("input", { id: "mesh-number", type: "number", min: "1", max: String(MOST), step: "1", value: String(this.number), "aria-label": "Number of devices", on: { change: () => {
      this.number = Math.min(MOST, Math.max(1, Math.round(Number(this.number_.value) || 1)));
      this.number_.value = String(this.number);
      this.again();
    } } });
    this.kind = h("select", { id: "mesh-device", "aria-label": "Kind of device", on: { change: () => {
      this.device = this.kind.value;
      this.again();
    } } }, devices.map((name) => h("option", { value: name, selected: name === this.device }, name)));
    this.menu = h("select", { id: "mesh-split", "aria-label": "Split", on: { change: () => {
      this.chosen = this.menu.value;
      this.show(this.data);
    } } });
    this.rest = h("div", {}, h("p", { class: "quiet" }, "…"), h("p", { class: "how" }, HOW));
    body.append(h("p", { class: "choose" }, this.number_, " × ", this.kind, this.menu), this.rest); // controls stay while figures change
  }

  // The spec or the sizes have changed.
  follow(question) {
    this.question = question;
    this.again();
  }

  again() {
    this.wanted = this.question;
    this.ask();
  }

  async ask() {
    if (!this.visible || !this.wanted || this.asking) return;
    const { text, batch, length, precision } = this.wanted;
    this.wanted = null;
    this.asking = true;
    try {
      const data = { text, batch, precision, device: this.device, devices: this.number };
      this.show(await post("mesh", length ? { ...data, length } : data));
    } catch (error) {
      this.rest.replaceChildren(h("p", { class: "bad message" }, error.message));
    } finally {
      this.asking = false;
      this.ask();
    }
  }

  show(data) {
    this.data = data;
    const { splits, kinds, precision, batch, length } = data;
    const split = splits.find((each) => splitText(each) === this.chosen) || splits[0];
    this.chosen = split ? splitText(split) : "";
    this.menu.replaceChildren(...splits.map((each) => h("option", { value: splitText(each), selected: each === split }, `${splitText(each)}: ${verdict(each)}`)));
    this.menu.hidden = !splits.length;
    this.rest.replaceChildren(...[
      ...(split ? this.split(split, data) : [h("p", { class: "bad" }, `The model cannot be split over ${whole(this.number)} devices.`)]),
      splits.length > 1
        ? table(`Splits of ${whole(this.number)} × ${this.device}`, ["split", "training", "serving", "step at least", ""],
          splits.map((each) => [splitText(each), room(each.fits, each.total), room(each.fits_serving, total(each.serving)), each.step_seconds ? seconds(each.step_seconds) : "", verdict(each)]), ["training", "serving", "step at least"])
        : null,
      data.more ? h("p", { class: "quiet" }, `and ${data.more} more splits`) : null,
      table("The fewest devices", ["device", "to serve", "to train"], kinds.map((each) => [each.name, fewest(each.serve), fewest(each.train)])),
      h("p", { class: "how" }, `${precision}, batch ${whole(batch)} of ${whole(length)} tokens for each dp group, as zoo report --mesh: ${HOW}`),
    ].filter(Boolean));
  }

  split(split, { memory }) {
    const row = (name, parts, values, fits) => ({
      name: h("span", {}, `${name} `, h("span", { class: fits ? "good" : "bad" }, fits ? "fits" : "no room")),
      text: `${bytes(total(values))} of ${bytes(memory)}`,
      parts: parts.map(([title, key, tint]) => ({ name: title, value: values[key], text: bytes(values[key]), colour: `var(--${COLOURS[tint] || tint})` })),
    });
    const parts = [...TRAINING, SERVING[1]];
    return [
      bars([row("Training, per device", TRAINING, split.memory, split.fits), row("Serving, per device", SERVING, split.serving, split.fits_serving)], "Memory of a device", memory),
      keyOf(parts.map(([name, , tint]) => [name, `var(--${COLOURS[tint] || tint})`])),
      h("p", { class: "quiet" }, split.step_seconds ? `A training step takes at least ${seconds(split.step_seconds)}, bound by ${split.bound === "compute" ? "matrix products" : `the traffic of ${split.bound}`}` : "The speed of the device is unknown", split.idle ? `; the pipeline idles ${percentText(split.idle)} of it.` : "."),
      behind("Per device", ["", "training", "serving"], () => [
        ...parts.map(([name, key]) => [name, key in split.memory ? bytes(split.memory[key]) : "", key in split.serving ? bytes(split.serving[key]) : ""]),
        ...split.traffic.map((each) => [`${each.dim}: ${each.what}, over the ${each.link}`, bytes(each.bytes), ""])]),
    ];
  }
}

const MOST = 4096;
const HOW = "dp shards weights and Adam's state, tp cuts heads, experts and vocabulary, pp cuts layers. A tenth of the memory stays free.";
const COLOURS = { router: "line" };
const total = (values) => Object.values(values).reduce((sum, value) => sum + value, 0);
const room = (fits, size) => h("span", { class: fits ? "fit" : "split" }, bytes(size));
const fewest = (found) => (found.refused ? h("span", { class: "split", title: found.refused }, "none") : h("span", { title: `${bytes(found.bytes)} per device` }, whole(found.devices), found.devices > 1 ? h("span", { class: "quiet" }, ` (${splitText(found)})`) : ""));
