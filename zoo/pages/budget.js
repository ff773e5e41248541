// Memory, training and bounds on devices at the sizes and the precision that are chosen, as zoo.reports.report has them.
const BUDGET = (() => {
  const { at, evaluate, readable, cell, figure, counted, fill, choose, follow } = SIZES;
  const budget = DATA.budget;
  const { stages } = DATA.costs;
  const names = Object.keys(stages);
  const mixture = names.includes("step") && budget.stages.step.read.routed.length > 0;
  const ENDLESS = 2n ** 40n; // a model without a limit, in memory that its states do not fill
  let precision = budget.chosen;
  let shown = budget.devices.length ? budget.devices[0].name : null;

  const most = (values) => values.reduce((best, value) => (value > best ? value : best), 0n);
  const least = (a, b) => (a < b ? a : b);
  const computed = () => budget.precisions[precision].computed;
  const itemsize = () => BigInt(budget.itemsize[computed()]);
  const weights = () => BigInt(budget.precisions[precision].bytes);
  const source = () => at.S ?? 0n;
  const past = () => at.P ?? 0n;

  // Bytes of caches after some tokens, of the model or of a part: windows drop what they have passed.
  function cached(batch, length, encoded, cache = budget.cache) {
    if (!cache) return 0n;
    const own = cache.own.reduce(
      (sum, [values, window]) => sum + BigInt(values) * (window === null ? length : least(length, BigInt(window))),
      0n,
    );
    const tokens = (own + BigInt(cache.encoder) * encoded) * itemsize();
    return batch * (tokens + BigInt(cache.state));
  }

  // Bytes of memory that some sequences of a length take.
  function need(batch, length) {
    const training = budget.training.bytes[itemsize()];
    const outputs = (stage, sizes) => 4n * evaluate(budget.stages[stage].outputs, sizes);
    if (budget.cache) {
      return weights() + cached(batch, length, source()) + outputs("step", { ...at, B: batch, P: length });
    }
    const sizes = { ...at, B: batch, T: length };
    return weights() + most(training.layers.map((layer) => evaluate(layer, sizes))) + outputs("forward", sizes);
  }

  // The largest number that fits, where all smaller ones do, too.
  function largest(fits, limit) {
    let low = 0n;
    let high = limit + 1n;
    while (high - low > 1n) {
      const middle = (low + high) / 2n;
      if (fits(middle)) low = middle;
      else high = middle;
    }
    return low;
  }

  // The expected share of experts that some tokens select, each so many of all at random.
  const selected = (chosen, every, tokens) => 1 - (1 - chosen / every) ** tokens;

  // The bytes of weights that a stage reads for some tokens.
  function weightsRead(name, tokens) {
    const { fixed, routed } = budget.stages[name].read;
    const values = routed.reduce((sum, [count, chosen, every]) => sum + count * selected(chosen, every, tokens), fixed);
    return BigInt(Math.round((values * Number(weights())) / Number(budget.values)));
  }

  // FLOPs of a stage, bytes of weights and caches, and tokens.
  function demand(name) {
    const tokens = at.B * (name === "step" ? 1n : name === "encode" ? source() : name === "see" ? BigInt(budget.seen) : at.T);
    const read = weightsRead(name, Number(tokens));
    const caches = {
      see: () => 0n,
      encode: () => cached(at.B, 0n, source()),
      step: () => cached(at.B, past(), source()) + cached(at.B, 1n, 0n),
    };
    const kept = (caches[name] ?? (() => cached(at.B, at.T, source())))();
    return { flops: evaluate(stages[name].rows[0].products), bytes: read + kept, tokens };
  }

  // The least seconds of each stage on as many of a device as hold the model, and what fits.
  function bounds(device) {
    const needed = need(at.B, at.T > past() ? at.T : past());
    const count = device.alone ? 1 : Math.max(1, Math.ceil(Number(needed) / device.memory));
    const rate = device.rates[computed()];
    const memory = BigInt(Math.floor(count * device.memory));
    const roofs = names.map((name) => {
      const { flops, bytes, tokens } = demand(name);
      const computing = Number(flops) / (count * rate);
      const reading = Number(bytes) / (count * device.bandwidth);
      const seconds = Math.max(computing, reading);
      return { name, seconds, bound: computing > reading ? "compute" : "memory", rate: Number(tokens) / seconds };
    });
    const length = at.T > past() ? at.T : past();
    return {
      count,
      roofs: rate ? roofs : null,
      batch: largest((batch) => need(batch, length) <= memory, ENDLESS),
      context: largest((long) => need(1n, long) <= memory, budget.longest === null ? ENDLESS : BigInt(budget.longest)),
    };
  }

  const described = (name, about) => {
    const told = cell(about, "small");
    told.className = "quiet";
    return cell([name, document.createElement("br"), told]);
  };

  function showMemory() {
    const rows = Object.entries(budget.precisions).map(([name, { bytes }]) => [
      described(`files in ${name}`, name === precision ? "the precision chosen above" : ""),
      figure(BigInt(bytes), "B"),
    ]);
    if (budget.cache) {
      const windowed = budget.cache.own.some(([, window]) => window !== null);
      const about = windowed ? "windowed layers keep only their window" : "all that the layers keep";
      const state = cached(1n, 0n, 0n);
      if (state) rows.push([described("states of constant size", "for one sequence of any length"), figure(state, "B")]);
      rows.push([described("cache of one more token", [budget.cache.form, `in ${computed()}`, "for one sequence"].filter(Boolean).join(", ")), figure(cached(1n, 1n, 0n) - state, "B")]);
      rows.push([described("cache after the prompt", `${about}; T = ${at.T}`), figure(cached(at.B, at.T, source()), "B")]);
      rows.push([described("cache before a step", `${about}; P = ${at.P}`), figure(cached(at.B, past(), source()), "B")]);
    }
    fill(document.getElementById("memory"), ["to run", ["bytes", true]], rows);
  }

  // What a decoder step of a mixture reads at some batch sizes.
  function showReads() {
    fill(
      document.getElementById("reads"),
      ["batch", ["experts per layer", true], ["weights read per step", true]],
      budget.batches.map((batch) => {
        const experts = budget.stages.step.read.routed.map(
          ([, chosen, every]) => `${(every * selected(chosen, every, batch)).toFixed(1)} of ${every}`,
        );
        const told = cell([...new Set(experts)].join(", "));
        told.className = "number";
        return [cell(String(batch)), told, figure(weightsRead("step", batch), "B")];
      }),
    );
  }

  function showTraining() {
    const size = itemsize();
    const { state, activations, unfused, kept, layers } = budget.training.bytes[size];
    const { forward, backward, recomputed } = budget.training.passes;
    const states = Object.values(state).reduce((sum, bytes) => sum + BigInt(bytes), 0n);
    const again = evaluate(kept) + most(layers.map((layer) => evaluate(layer)));
    const all = evaluate(forward) + evaluate(backward);
    const titles = {
      weights: "weights",
      gradients: "gradients",
      adam_moments: "Adam's moments",
      master_weights: "master weights",
    };
    const told = {
      weights: `in ${computed()}`,
      gradients: `in ${computed()}`,
      adam_moments: "two in float32",
      master_weights: "a copy in float32",
    };
    const rows = [
      [described("forward and backward", "matrix products"), figure(all, "FLOP")],
      [described("the same with checkpoints", "layers run forward once more"), figure(all + evaluate(recomputed), "FLOP")],
      ...Object.entries(state)
        .filter(([, bytes]) => bytes !== "0")
        .map(([name, bytes]) => [described(titles[name], told[name]), figure(BigInt(bytes), "B")]),
      [described("activations", "fused attention"), figure(evaluate(activations), "B")],
      [described("activations with scores", "unfused attention"), figure(evaluate(unfused), "B")],
      [described("activations with checkpoints", "layer inputs, and one recomputed layer"), figure(again, "B")],
      [described("total", "without checkpoints"), figure(states + evaluate(activations), "B")],
      [described("total with checkpoints", ""), figure(states + again, "B")],
    ];
    fill(document.getElementById("training"), ["to train", ["at these sizes", true]], rows);
  }

  const duration = (seconds) => {
    const [unit, scale] = [["s", 1], ["ms", 1e3], ["\u00b5s", 1e6]].find(([, each]) => seconds * each >= 1) ?? ["ns", 1e9];
    return `${(seconds * scale).toPrecision(3)} ${unit}`;
  };

  function showDevices() {
    fill(
      document.getElementById("devices"),
      ["device", ["needed", true], ...names.map((name) => [`${name}, at least`, true]), ["largest batch", true], ["largest context", true]],
      budget.devices.map((device) => {
        const { count, roofs, batch, context } = bounds(device);
        const cells = names.map((name, i) => {
          const made = roofs
            ? described(duration(roofs[i].seconds), `${readable(roofs[i].rate, "")} tokens/s, by ${roofs[i].bound}`)
            : cell(`no ${computed()}`);
          made.className = "number";
          if (roofs) made.dataset.seconds = roofs[i].seconds;
          return made;
        });
        const longest = context >= ENDLESS ? cell("any") : counted(context);
        longest.className = "number";
        return [described(device.name, device.summary), counted(count), ...cells, counted(batch), longest];
      }),
    );
  }

  // The roof of one device, and under it what every stage reaches at most.
  function showRoof() {
    const device = budget.devices.find(({ name }) => name === shown);
    const rate = device && device.rates[computed()];
    const svg = document.getElementById("roof");
    svg.toggleAttribute("hidden", !rate);
    if (!rate) return;
    const [wide, high, left, bottom] = [468, 280, 74, 44];
    const ridge = rate / device.bandwidth;
    const points = names.map((name) => {
      const { flops, bytes } = demand(name);
      const intensity = Number(flops) / Number(bytes);
      return { name, intensity, reached: Math.min(rate, intensity * device.bandwidth) };
    });
    const ends = [...points.map((point) => point.intensity), ridge];
    const x0 = Math.floor(Math.log10(Math.min(...ends, ridge / 100)));
    const x1 = Math.ceil(Math.log10(Math.max(...ends)) + 0.3);
    const y1 = Math.ceil(Math.log10(rate) + 0.2);
    const y0 = Math.floor(Math.min(Math.log10(10 ** x0 * device.bandwidth), y1 - 3));
    const x = (value) => left + ((Math.log10(value) - x0) / (x1 - x0)) * (wide - left - 28);
    const y = (value) => 12 + (1 - (Math.log10(value) - y0) / (y1 - y0)) * (high - bottom - 12);
    const text = (place, anchor, content) => `<text x="${place[0]}" y="${place[1]}" text-anchor="${anchor}">${content}</text>`;
    // Names below their points, one under the other where points are close.
    const labels = [];
    for (const { name, intensity, reached } of points) {
      const anchor = x(intensity) < left + 60 ? "start" : "end";
      const place = [x(intensity) + 4, y(reached) + 20];
      const near = ({ place: [a, b] }) => Math.abs(a - place[0]) < 60 && Math.abs(b - place[1]) < 14;
      while (labels.some(near)) place[1] += 15;
      labels.push({ name, place, anchor });
    }
    const powers = (first, last) => Array.from({ length: last - first + 1 }, (_, i) => 10 ** (first + i));
    const parts = [
      ...powers(y0, y1).map((value) => `<path class="grid" d="M${left} ${y(value)}H${wide - 28}"/>${text([left - 6, y(value) + 4], "end", readable(value, ""))}`),
      ...powers(x0, x1).map((value) => text([x(value), high - bottom + 18], "middle", value < 1 ? value : readable(value, ""))),
      `<path class="axis" d="M${left} 12V${high - bottom}H${wide - 28}"/>`,
      text([(left + wide) / 2, high - 6], "middle", "FLOPs per byte"),
      `<text transform="translate(13 ${(high - bottom) / 2}) rotate(-90)" text-anchor="middle">FLOP/s</text>`,
      `<path class="line" d="M${x(10 ** x0)} ${y(10 ** x0 * device.bandwidth)}L${x(ridge)} ${y(rate)}H${wide - 28}"/>`,
      ...points.map(({ intensity, reached }) => `<circle cx="${x(intensity)}" cy="${y(reached)}" r="5"/>`),
      ...labels.map(({ name, place, anchor }) => text(place, anchor, name)),
    ];
    svg.innerHTML = parts.join("");
  }

  choose(document.getElementById("precision"), Object.keys(budget.precisions), precision, (name) => {
    precision = name;
    show();
    document.dispatchEvent(new Event("precision"));
  });
  if (budget.devices.length) {
    choose(document.getElementById("device"), budget.devices.map(({ name }) => name), shown, (name) => {
      shown = name;
      showRoof();
    });
  }

  function show() {
    showMemory();
    if (mixture) showReads();
    showTraining();
    if (budget.devices.length) {
      showDevices();
      showRoof();
    }
  }
  follow(show);

  return { cached, computed, itemsize, source, weights: () => [precision, weights()] };
})();
