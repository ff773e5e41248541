// Pictures of numbers as SVG: areas, bars, a curve over the context, and the roofline.

import { bytes, count, flops, h, parameters, s, whole } from "./dom.js";

const WIDTH = 400;
const pen = document.createElement("canvas").getContext("2d"); // for the widths of texts
const font = getComputedStyle(document.body).fontFamily;

function picture(height, label, ...children) {
  return s("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": label }, s("title", {}, label), children);
}

export function treemap(root, height = 210) {
  const cells = [];
  const label = (text, place, size = 11, cut = true) => {
    pen.font = `${size}px ${font}`;
    const fits = (shown) => pen.measureText(shown).width <= place.width - 6;
    if (place.height < size + 4) return "";
    if (fits(text)) return text;
    if (!cut) return ""; // the beginning of a number is another number
    let kept = text.length - 1;
    while (kept > 1 && !fits(`${text.slice(0, kept)}…`)) kept -= 1;
    return kept > 1 ? `${text.slice(0, kept)}…` : "";
  };
  const put = (node, place, depth) => {
    const children = node.children || [];
    const open = children.length && place.width > 46 && place.height > 38 && depth < 5;
    const share = (100 * node.count) / root.count;
    const tip = `${node.path || node.name}: ${whole(node.count)} parameters, ${share < 0.1 ? "< 0.1" : share.toFixed(1)} %`;
    if (!open) {
      const name = label(node.name, place);
      cells.push(
        s("g", { class: "cell", dataset: { path: node.path } },
          s("title", {}, tip),
          s("rect", { x: place.x + 0.5, y: place.y + 0.5, width: Math.max(0, place.width - 1), height: Math.max(0, place.height - 1), rx: 2, fill: `var(--${node.role})`, stroke: "var(--ground)" }),
          name && s("text", { x: place.x + 4, y: place.y + 13, "font-size": 11 }, name),
          name && place.height > 30 && s("text", { x: place.x + 4, y: place.y + 26, "font-size": 10, class: "quiet" }, label(parameters(node.count), place, 10, false))));
      return;
    }
    let inner = place;
    if (depth && children.length > 1) {
      const name = label(node.name, place, 10);
      cells.push(s("g", { class: "frame" }, s("title", {}, tip), s("rect", { x: place.x + 0.5, y: place.y + 0.5, width: place.width - 1, height: place.height - 1, rx: 3, fill: "var(--panel)", stroke: "var(--line)" }), name && s("text", { x: place.x + 4, y: place.y + 12, "font-size": 10, class: "quiet" }, name)));
      inner = { x: place.x + 2, y: place.y + 16, width: place.width - 4, height: place.height - 18 };
    }
    for (const each of squarified(children, inner.x, inner.y, inner.width, inner.height)) put(each.node, each, depth + 1);
  };
  put(root, { x: 0, y: 0, width: WIDTH, height }, 0);
  return picture(height, "Parameters by module: areas are shares", cells);
}

// Bars of parts side by side: rows are {name, text, parts: [{name, value, colour}]}; a line marks the limit, if any.
export function bars(rows, label, limit = 0) {
  const most = Math.max(...rows.map((row) => row.parts.reduce((sum, part) => sum + part.value, 0)), 1e-30, limit);
  return h("div", { class: "bars", role: "img", "aria-label": label },
    rows.map((row) =>
      h("div", { class: "bar-row" },
        h("div", { class: "bar-head" }, h("span", {}, row.name), h("b", {}, row.text)),
        h("div", { class: "bar" },
          limit ? h("span", { class: "bar-limit", title: `limit: ${bytes(limit)}`, style: { left: `${(100 * limit) / most}%` } }) : null,
          row.parts.filter((part) => part.value > 0).map((part) =>
            h("span", { class: "bar-part", title: `${part.name}: ${part.text}`, style: { width: `${(100 * part.value) / most}%`, background: part.colour } }))))));
}

export const keyOf = (entries) =>
  h("ul", { class: "keys" }, entries.map(([name, colour, text]) => h("li", {}, h("span", { class: "swatch", style: { background: colour } }), name, text ? h("span", { class: "quiet" }, ` ${text}`) : "")));

const log = Math.log10;

// Ticks of a logarithmic axis: powers of ten, fewer of them where there are many.
function decades(low, high, most = 7) {
  const first = Math.ceil(log(low) - 1e-9);
  const last = Math.floor(log(high) + 1e-9);
  const step = Math.max(1, Math.ceil((last - first + 1) / most));
  return Array.from({ length: Math.floor((last - first) / step) + 1 }, (_, i) => 10 ** (first + i * step));
}

// Ticks of an even axis: three to six round values, no closer than the least step.
function even(low, high, least) {
  const rough = Math.max((high - low) / 5, least);
  const power = 10 ** Math.floor(log(rough) + 1e-9);
  const step = power * [1, 2, 5, 10].find((times) => power * times >= rough * (1 - 1e-9));
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, i) => (first + i) * step);
}

// Bytes over the context; the base dashed.
export function cacheCurve(cache, length) {
  const height = 170;
  const [left, right, top, bottom] = [52, 10, 10, 26];
  const contexts = cache.contexts;
  const most = Math.max(...cache.bytes, ...(cache.base || [0]), 1);
  const last = contexts[contexts.length - 1];
  const x = (context) => left + (context / last) * (WIDTH - left - right);
  const y = (value) => height - bottom - (value / most) * (height - top - bottom);
  const line = (values) => values.map((value, i) => `${i ? "L" : "M"}${x(contexts[i]).toFixed(1)} ${y(value).toFixed(1)}`).join("");
  const ticks = [0, most / 2, most];
  const shown = [0.25, 0.5, 0.75, 1].map((share) => Math.round(last * share));
  const short = (context) => (context >= 1024 && context % 1024 === 0 ? `${context / 1024}K` : whole(context));
  return picture(height, `Cache by context: ${bytes(cache.bytes[cache.bytes.length - 1])} at ${whole(last)} tokens`,
    ticks.map((value) => [
      s("line", { x1: left, x2: WIDTH - right, y1: y(value), y2: y(value), class: "grid" }),
      s("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end", class: "tick" }, bytes(value)),
    ]),
    shown.map((context) => s("text", { x: x(context), y: height - 8, "text-anchor": "middle", class: "tick" }, short(context))),
    cache.base && s("path", { d: line(cache.base), class: "curve base" }),
    s("path", { d: `${line(cache.bytes)}`, class: "curve" }),
    s("circle", { cx: x(Math.min(length, last)), cy: y(cache.at), r: 4, class: "dot" }, s("title", {}, `${whole(length)} tokens: ${bytes(cache.at)}`)));
}

// Rates over intensity: the roof of a device, and a point for each call.
export function rooflineChart(device, stages) {
  const height = 190;
  const [left, right, top, bottom] = [56, 12, 12, 32];
  const ridge = device.rate / device.bandwidth;
  const intensities = Object.values(stages).map((stage) => stage.intensity);
  const low = Math.min(...intensities, ridge) / 4;
  const high = Math.max(...intensities, ridge) * 4;
  const peak = device.rate * 2;
  const least = Math.min(...intensities.map((each) => Math.min(device.rate, each * device.bandwidth)), device.rate) / 6;
  const x = (value) => left + ((log(value) - log(low)) / (log(high) - log(low))) * (WIDTH - left - right);
  const y = (value) => height - bottom - ((log(value) - log(least)) / (log(peak) - log(least))) * (height - top - bottom);
  const clip = Math.max(low, least / device.bandwidth);
  return picture(height, `Roofline of ${device.name}`,
    decades(least, peak, 5).map((value) => [
      s("line", { x1: left, x2: WIDTH - right, y1: y(value), y2: y(value), class: "grid" }),
      s("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end", class: "tick" }, `${count(value).replace(/\.0+(?= |$)/, "")}`),
    ]),
    decades(low, high).map((value) => s("text", { x: x(value), y: height - 16, "text-anchor": "middle", class: "tick" }, value >= 1 ? whole(value) : String(value))),
    s("text", { x: (left + WIDTH) / 2, y: height - 3, "text-anchor": "middle", class: "tick" }, "FLOPs per byte"),
    s("text", { x: left, y: top - 3, class: "tick" }, "FLOP/s"),
    s("path", { d: `M${x(clip)} ${y(clip * device.bandwidth)}L${x(ridge)} ${y(device.rate)}L${x(high)} ${y(device.rate)}`, class: "curve roof" }),
    Object.entries(stages).map(([name, stage]) => {
      const rate = Math.min(device.rate, stage.intensity * device.bandwidth);
      const px = x(stage.intensity);
      const end = px > WIDTH * 0.7;
      return s("g", {},
        s("circle", { cx: px, cy: y(rate), r: 5, class: "dot" }, s("title", {}, `${name}: ${stage.intensity.toPrecision(3)} FLOPs per byte, at most ${flops(rate)}/s`)),
        s("text", { x: px + (end ? -9 : 9), y: y(rate) + 16, class: "point", "text-anchor": end ? "end" : "start" }, name));
    }));
}

// Losses over steps: one curve for each model, averaged over a few steps, and the loss of guessing.
export function lossCurves(curves, steps, chance) {
  const height = 200;
  const [left, right, top, bottom] = [44, 12, 14, 30];
  const lines = curves.map((curve) => smooth(curve.points, Math.max(1, Math.round(steps / 50))));
  const losses = [...(chance ? [chance] : []), ...lines.flat().map(([, loss]) => loss)];
  const [least, most] = losses.length ? [Math.min(...losses), Math.max(...losses)] : [0, 1];
  const margin = 0.08 * (most - least) || Math.max(most / 2, 1e-6);
  const [low, high] = [least < most / 3 ? 0 : least - margin, most + margin];
  const x = (step) => left + (step / steps) * (WIDTH - left - right);
  const y = (loss) => height - bottom - ((loss - low) / (high - low)) * (height - top - bottom);
  const told = curves.filter((curve) => curve.points.length).map((curve) => `${curve.name} ${curve.points.at(-1)[1].toFixed(3)}`);
  return picture(height, `Loss in training${told.length ? `: ${told.join(", ")}` : ""}`,
    even(low, high, 1e-3).map((loss) => [
      s("line", { x1: left, x2: WIDTH - right, y1: y(loss), y2: y(loss), class: "grid" }),
      s("text", { x: left - 6, y: y(loss) + 4, "text-anchor": "end", class: "tick" }, String(Number(loss.toFixed(3)))),
    ]),
    even(0, steps, 1).map((step) => s("text", { x: x(step), y: height - 14, "text-anchor": "middle", class: "tick" }, whole(step))),
    s("text", { x: (left + WIDTH) / 2, y: height - 2, "text-anchor": "middle", class: "tick" }, "steps"),
    chance ? [s("line", { x1: left, x2: WIDTH - right, y1: y(chance), y2: y(chance), class: "chance" }), s("text", { x: WIDTH - right, y: y(chance) - 4, "text-anchor": "end", class: "tick" }, "guessing")] : null,
    curves.map((curve, number) => curve.points.length && s("path", { class: curve.base ? "curve base" : "curve", d: lines[number].map(([step, loss], i) => `${i ? "L" : "M"}${x(step).toFixed(1)} ${y(loss).toFixed(1)}`).join("") })));
}

function smooth(points, wide) {
  let sum = 0;
  return points.map(([step, loss], i) => {
    sum += loss - (i >= wide ? points[i - wide][1] : 0);
    return [step, sum / Math.min(i + 1, wide)];
  });
}
