// The parts of the drawing: the figures of the one that is chosen stand beside it, and its rows in the tables are marked.
{
  const { at, evaluate, readable, cell, follow } = SIZES;
  const { boxes, parts } = DATA.parts;
  const { stages } = DATA.costs;
  const section = document.getElementById("architecture");
  const svg = section.querySelector("svg");
  const panel = document.getElementById("part");
  const groups = [...svg.querySelectorAll("[data-box]")].filter((group) => boxes[group.dataset.box] !== undefined);
  const partOf = (group) => parts[boxes[group.dataset.box]];
  let chosen = null; // a group of the drawing

  const whole = (count) => count.toLocaleString("en-US");
  const share = (part, all) => (all ? `${((100 * Number(part)) / Number(all)).toFixed(1)}\u00a0%` : "");

  // A module's path as its stack, its layers and the rest.
  function place({ path, layers }) {
    const match = /^(\w+\.blocks)\.(\d+)(.*)$/.exec(path);
    if (!match) return { around: path, layers: null, rest: "" };
    const runs = (layers || match[2]).split(",").map((run) => run.split("-").map(Number));
    return { around: match[1], layers: runs, rest: match[3] };
  }

  const within = (path, outer) => path === outer || path.startsWith(`${outer}.`);

  // Whether a module, in some of its layers, is another one or inside it.
  function inside(inner, outer) {
    const [a, b] = [place(inner), place(outer)];
    if (!a.layers || !b.layers) return !b.layers && within(inner.path, outer.path);
    const meet = a.layers.some(([from, to = from]) => b.layers.some(([first, last = first]) => from <= last && first <= to));
    return a.around === b.around && meet && (b.rest === "" || within(a.rest, b.rest));
  }

  const line = (name, value, title = "") => {
    const made = cell([cell(name, "th"), cell(value)], "tr");
    made.firstChild.scope = "row";
    made.title = title;
    return made;
  };

  // A path as code, in lines that end at its dots.
  const path = (text) =>
    cell(text.split(/(?<=\.)/).flatMap((name, i) => [...(i ? [document.createElement("wbr")] : []), name]), "code");

  // FLOPs of each stage, with their share of the model's.
  const flops = (own) =>
    Object.keys(stages).flatMap((name) => {
      const value = evaluate(own[name]?.products ?? []);
      if (!value) return [];
      const all = evaluate(stages[name].rows[0].products);
      const told = own === total ? "" : `, ${share(value, all)}`;
      return [line(`FLOPs, ${name}`, `${readable(value, "FLOP")}${told}`, whole(value))];
    });
  const total = Object.fromEntries(Object.entries(stages).map(([name, stage]) => [name, stage.rows[0]]));

  function sizesTold() {
    const told = document.createElement("p");
    const link = cell("change", "a");
    link.href = "#costs";
    told.className = "quiet";
    told.append(`At ${Object.entries(at).map(([symbol, size]) => `${symbol} = ${whole(size)}`).join(", ")} (`, link, ").");
    return told;
  }

  function memory(parameters, cache) {
    const rows = [];
    const length = at.T > (at.P ?? 0n) ? at.T : at.P;
    const bytes = BUDGET.cached(at.B, length, BUDGET.source(), cache);
    if (parameters) rows.push(line(`parameters in ${BUDGET.computed()}`, readable(BigInt(parameters) * BUDGET.itemsize(), "B")));
    if (bytes) rows.push(line(`cache at ${whole(length)} tokens`, readable(bytes, "B")));
    return rows;
  }

  function showModel() {
    const { count } = DATA.parameters;
    const heading = cell("The whole model", "h3");
    const table = cell([line("parameters", whole(count)), ...memory(count, DATA.budget.cache), ...flops(total)], "table");
    const hint = cell("Choose a part of the drawing, or a row of a table below, to see its share.", "p");
    hint.className = "quiet";
    panel.replaceChildren(heading, table, sizesTold(), hint);
  }

  function shapes(rows) {
    return rows.flatMap(([method, inputs, outputs]) => {
      const name = method ? ` of ${method}` : "";
      const list = (texts) => texts.flatMap((text, i) => [...(i ? [document.createElement("br")] : []), cell(text, "code")]);
      return [line(`input${name}`, list(inputs)), line(`output${name}`, list(outputs))];
    });
  }

  function showPart(part) {
    const heading = cell(part.title, "h3");
    if (part.role) {
      const swatch = cell("", "span");
      swatch.className = "swatch";
      swatch.style.background = `var(--${part.role})`;
      heading.prepend(swatch);
    }
    const modules = part.places.map(({ text }) => cell(path(text), "div"));
    const rows = [
      ...(modules.length ? [line("module", modules)] : []),
      ...(part.keys ? [line("spec", path(part.keys))] : []),
      line("parameters", part.parameters ? `${whole(part.parameters)}, ${share(part.parameters, DATA.parameters.count)}` : part.each || "none"),
      ...(part.parameters && part.each && part.places.some(({ layers }) => /[-,]/.test(layers)) ? [line("in one layer", part.each)] : []),
      ...memory(part.parameters, part.cache),
      ...flops(part.stages),
      ...shapes(part.shapes),
    ];
    const back = cell("Whole model", "button");
    back.type = "button";
    back.addEventListener("click", () => choose(null));
    const details = cell(part.details.join(", "), "p");
    panel.replaceChildren(back, heading, ...(part.details.length ? [details] : []), cell(rows, "table"), sizesTold());
  }

  function show() {
    if (chosen) showPart(partOf(chosen));
    else showModel();
  }

  function mark() {
    const places = chosen ? partOf(chosen).places : [];
    for (const element of document.querySelectorAll("tr[data-path], .treemap [data-path]")) {
      const own = { path: element.dataset.path, layers: element.dataset.layers };
      element.classList.toggle("marked", places.some((outer) => inside(own, outer)));
    }
  }

  function choose(group) {
    chosen?.removeAttribute("aria-current");
    chosen = group;
    if (group) {
      group.setAttribute("aria-current", "true");
      for (const other of groups) other.setAttribute("tabindex", other === group ? 0 : -1);
    }
    panel.toggleAttribute("data-chosen", group !== null);
    show();
    mark();
    group?.scrollIntoView({ block: "nearest" });
  }

  // The innermost part that holds a row's module, if any does.
  function partAround(row) {
    const own = { path: row.dataset.path, layers: row.dataset.layers };
    const depth = (group) => Math.max(...partOf(group).places.map(({ path }) => path.length));
    const around = groups.filter((group) => partOf(group).places.some((outer) => inside(own, outer)));
    return around.sort((a, b) => depth(b) - depth(a) || b.hasAttribute("data-path") - a.hasAttribute("data-path"))[0] ?? null;
  }

  svg.setAttribute("role", "group");
  for (const group of groups) {
    const part = partOf(group);
    const count = part.parameters ? `, ${whole(part.parameters)} parameters` : "";
    group.setAttribute("role", "button");
    group.setAttribute("aria-label", `${part.title}${count}`);
    group.setAttribute("tabindex", -1);
    group.addEventListener("click", (event) => {
      event.stopPropagation();
      choose(chosen === group ? null : group);
    });
  }
  // Upwards, as the stream passes: the order in which the arrow keys move.
  const ordered = [...groups].sort((a, b) => b.getBBox().y + b.getBBox().height - a.getBBox().y - a.getBBox().height);
  const columns = [...ordered].sort((a, b) => Math.round(a.getBBox().x / 400) - Math.round(b.getBBox().x / 400));
  columns[0]?.setAttribute("tabindex", 0);
  svg.addEventListener("keydown", (event) => {
    const group = event.target.closest("[data-box]");
    const step = { ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1 }[event.key];
    if (!group) return;
    if (event.key === "Enter" || event.key === " ") choose(chosen === group ? null : group);
    else if (event.key === "Escape") choose(null);
    else if (step) {
      const next = columns[columns.indexOf(group) + step];
      if (!next) return;
      for (const other of groups) other.setAttribute("tabindex", other === next ? 0 : -1);
      next.focus();
    } else return;
    event.preventDefault();
  });
  document.addEventListener("click", (event) => {
    const row = event.target.closest("tr[data-path]");
    if (row && !String(getSelection())) choose(partAround(row));
  });
  document.addEventListener("redrawn", mark);
  document.addEventListener("precision", show);
  follow(show);
}
