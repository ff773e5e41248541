// The gallery: cards to search and sort, a model with its drawing and figures, two side by side, and the family tree.
// The address says what is shown: # the cards, #tree, #NAME a model, #A~B a pair.  Back goes back.
{
  const { cards, family, precision } = JSON.parse(document.getElementById("gallery-data").textContent);
  const names = Object.keys(cards);
  const of = (name) => cards[name].index;
  const views = Object.fromEntries(["cards", "tree", "model", "pair"].map((id) => [id, document.getElementById(id)]));
  const grid = document.querySelector(".cards");
  const search = document.getElementById("search");
  const order = document.getElementById("sort");
  const selects = [...document.querySelectorAll("[data-facet]")];
  const none = document.getElementById("none");
  const bar = document.getElementById("chosen");
  const picked = new Set();

  const whole = (value) => value.toLocaleString("en-US");
  const link = (name) => `#${encodeURIComponent(name)}`;

  function made(tag, content = [], attributes = {}) {
    const element = document.createElement(tag);
    element.append(...[content].flat());
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  }

  function readable(value, unit, digits = 3) {
    let power = 0;
    let number = value;
    while (number >= 999.5 && power < 6) {
      number /= 1000;
      power += 1;
    }
    const prefix = ["", "k", "M", "G", "T", "P", "E"][power];
    return `${power ? number.toPrecision(digits) : number} ${prefix}${unit}`.trim();
  }
  const parameters = (count) => readable(count, "").replace(" ", "").replace("k", "K").replace("G", "B");

  // What a card holds, unpacked once.
  const contents = new Map();
  function content(name) {
    if (!contents.has(name)) {
      const bytes = Uint8Array.from(atob(cards[name].content), (letter) => letter.charCodeAt(0));
      const text = new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
      contents.set(name, text.then(JSON.parse));
    }
    return contents.get(name);
  }

  // The figures of a model by name: as text, and as a number where two can be compared.
  function figures(name) {
    const model = of(name);
    const rows = [["parameters", whole(model.parameters), model.parameters]];
    if (model.active_parameters !== model.parameters) rows.push(["active per token", whole(model.active_parameters), model.active_parameters]);
    rows.push([`weights in ${precision}`, readable(model.weights, "B"), model.weights]);
    if (model.cache_per_token) rows.push(["cache per token", readable(model.cache_per_token, "B"), model.cache_per_token]);
    if (model.state) rows.push(["state per sequence", readable(model.state, "B"), model.state]);
    if (model.cache) rows.push([`cache at ${whole(model.tokens)} tokens`, readable(model.cache, "B"), model.cache]);
    for (const [stage, [flops, tokens]] of Object.entries(model.flops)) {
      const title = stage === "step" ? "FLOPs per new token" : `FLOPs of ${stage}, ${whole(tokens)} token${tokens > 1 ? "s" : ""}`;
      rows.push([title, readable(flops, ""), flops]);
    }
    for (const key of ["architecture", "layers", "width"]) rows.push([key, model[key], null]);
    if (model.vocabulary) rows.push(["vocabulary", whole(model.vocabulary), null]);
    if (model.context) rows.push(["context", model.context, null]);
    if (model.year) rows.push(["year", String(model.year), null]);
    return rows;
  }

  // ---------------------------------------------------------------------------------------------- the cards

  const items = new Map(names.map((name) => [name, card(name)]));
  const seen = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      seen.unobserve(target);
      content(target.dataset.name).then(({ drawing }) => {
        const thumb = target.querySelector(".thumb");
        thumb.innerHTML = drawing; // of this page's own making, with all text escaped
        plain(thumb.firstElementChild);
      });
    }
  }, { rootMargin: "300px" });

  // A drawing that is looked at as a whole: without tips and texts for readers of screens, who have the card's.
  function plain(svg) {
    svg.setAttribute("aria-hidden", "true");
    for (const extra of svg.querySelectorAll("title, desc, style, :scope > rect, :scope > text")) extra.remove();
    const { x, y, width, height } = svg.getBBox();
    svg.setAttribute("viewBox", `${x - 4} ${y - 4} ${width + 8} ${height + 8}`);
  }

  function card(name) {
    const model = of(name);
    const active = model.active_parameters !== model.parameters ? `, ${parameters(model.active_parameters)} active` : "";
    const check = made("input", [], { type: "checkbox", "aria-label": `Compare ${name}` });
    check.addEventListener("change", () => pick(name, check.checked));
    const about = made("div", [
      made("h2", made("a", name, { href: link(name) })),
      made("p", `${parameters(model.parameters)} parameters${active}${model.year ? ` \u00b7 ${model.year}` : ""}`),
      made("p", model.summary, { class: "what" }),
      made("label", [check, " compare"]),
    ], { class: "about" });
    const item = made("li", [made("div", [], { class: "thumb" }), about], { "data-name": name });
    item.texts = [name, model.summary, model.source, model.architecture, ...model.features, ...model.tasks].join(" ").toLowerCase();
    return item;
  }

  const value = (name, key) => (key === "step" ? (of(name).flops.step ?? of(name).flops.forward ?? [null])[0] : of(name)[key]);

  function sorted() {
    const key = order.value.replace("-", "");
    const sign = order.value.startsWith("-") ? -1 : 1;
    if (key === "name") return names;
    const unknown = (name) => value(name, key) === null || value(name, key) === undefined;
    return [...names].sort((a, b) => unknown(a) - unknown(b) || sign * (value(a, key) - value(b, key)));
  }

  function filter() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const [name, item] of items) {
      const fits =
        words.every((word) => item.texts.includes(word)) &&
        selects.every((select) => !select.value || [of(name)[select.dataset.facet]].flat().includes(select.value));
      item.hidden = !fits;
      shown += fits;
    }
    const chosen = selects.filter((select) => select.value).map((select) => select.value);
    none.hidden = shown > 0;
    none.firstElementChild.textContent = `No model matches ${[...(words.length ? [`\u201c${search.value.trim()}\u201d`] : []), ...chosen].join(" and ")}.`;
    document.getElementById("count").textContent = `${whole(shown)} of ${whole(names.length)} models`;
  }

  function pick(name, chosen) {
    if (chosen) picked.add(name);
    else picked.delete(name);
    while (picked.size > 2) picked.delete([...picked][0]);
    for (const [other, item] of items) item.querySelector("input").checked = picked.has(other);
    const [a, b] = picked;
    bar.hidden = !a;
    if (!a) return;
    const clear = made("button", "Clear", { type: "button" });
    clear.addEventListener("click", () => {
      picked.clear();
      pick("", false);
    });
    bar.replaceChildren(b ? made("a", `Compare ${a} and ${b}`, { href: link(`${a}~${b}`) }) : `Choose a model to compare with ${a}.`, clear);
  }

  // ---------------------------------------------------------------------------------------------- one model

  const table = (rows) =>
    made("table", rows.map(([title, text]) => made("tr", [made("th", title, { scope: "row" }), made("td", text)])), { class: "figure-table" });

  function drawn(drawing, name) {
    const around = made("div", [], { class: "scroll", tabindex: 0, role: "region", "aria-label": `Drawing of ${name}` });
    around.innerHTML = drawing; // of this page's own making, with all text escaped
    return around;
  }

  function program(text) {
    return made("div", [made("button", "Copy", { type: "button", class: "copy" }), made("pre", made("code", text))], { class: "program" });
  }

  const counted = () => made("p", `Each parameter counts once. FLOPs are those of matrix products, for one sequence; its cache is in ${precision}.`, { class: "quiet" });

  function picker(name, chosen) {
    const select = made("select", [made("option", "choose a model", { value: "" }), ...names.filter((other) => other !== name).map((other) => made("option", other))]);
    select.addEventListener("change", () => select.value && chosen(select.value));
    return made("div", made("label", ["compare with ", select]), { class: "pick" });
  }

  function kin(name) {
    const [node, parent, changes] = family[name] ?? [null, null, []];
    const lines = [];
    const near = names.filter((other) => other !== name && family[other]?.[0] === node && node !== null);
    const links = (list) => list.flatMap((other, i) => [...(i ? [", "] : []), made("a", other, { href: link(other) })]);
    if (parent) {
      const told = changes.slice(0, 6).flatMap((change, i) => [...(i ? [", "] : []), made("code", change)]);
      const more = changes.length > 6 ? ` and ${changes.length - 6} more` : "";
      lines.push(made("p", ["Nearest earlier structure: ", ...links([parent]), " (", made("a", "compare", { href: link(`${parent}~${name}`) }), ")", ...(told.length ? [". New: ", ...told, more] : []), "."]));
    }
    if (near.length) lines.push(made("p", ["Close relatives: ", ...links(near.slice(0, 12)), near.length > 12 ? ` and ${near.length - 12} more.` : "."]));
    return lines;
  }

  async function showModel(name) {
    const model = of(name);
    const { drawing, yaml } = await content(name);
    const facts = made("div", [
      table(figures(name)),
      counted(),
      made("h3", "Build it"),
      program(`zoo build ${name}\nzoo new my-${name} --like ${name}`),
      ...(family[name] ? [made("h3", "Kin"), ...kin(name)] : []),
      picker(name, (other) => go(`${name}~${other}`)),
    ]);
    views.model.replaceChildren(
      made("p", made("a", "\u2190 All models", { href: "#" })),
      made("h2", name, { tabindex: -1 }),
      made("p", model.summary),
      ...(model.source ? [made("p", model.source, { class: "quiet" })] : []),
      made("ul", [...model.features, ...model.tasks].map((text) => made("li", text)), { class: "chips" }),
      made("div", [drawn(drawing, name), facts], { class: "shown" }),
      made("details", [made("summary", "Spec"), made("pre", yaml)]),
    );
  }

  // ---------------------------------------------------------------------------------------------- two models

  const isPart = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
  const text = (value) => {
    if (value === undefined || value === null) return "\u2014";
    if (isPart(value) && "repeat" in value) {
      const what = value.pattern ? `(${value.pattern.map(text).join(", ")})` : value.use ?? "block";
      return `${value.repeat > 1 ? `${value.repeat} \u00d7 ` : ""}${what}${value.shared ? ", shared" : ""}`;
    }
    if (isPart(value)) return value.kind ?? Object.entries(value).filter(([, own]) => own !== null).map(([key, own]) => `${key} ${text(own)}`).join(", ");
    if (Array.isArray(value)) return value.map(text).join("; ");
    return String(value);
  };

  // The paths at which two specs differ: parts of different kinds are one difference, apart from the parts that both have.
  function* differing(a, b, path) {
    if (isPart(a) && isPart(b)) {
      let keys = [...new Set([...Object.keys(a), ...Object.keys(b)])];
      if (a.kind !== b.kind) {
        yield [path, a, b];
        keys = keys.filter((key) => isPart(a[key]) && isPart(b[key]));
      }
      for (const key of keys) yield* differing(a[key], b[key], path ? `${path}.${key}` : key);
    } else if (text(a) !== text(b)) yield [path, a, b];
  }

  async function showPair(a, b) {
    const [first, second] = await Promise.all([content(a), content(b)]);
    const own = Object.fromEntries(figures(b).map((row) => [row[0], row]));
    const titles = [...new Set([...figures(a), ...figures(b)].map(([title]) => title))];
    const mine = Object.fromEntries(figures(a).map((row) => [row[0], row]));
    const rows = titles.map((title) => {
      const [x, y] = [mine[title], own[title]];
      const ratio = x?.[2] && y?.[2] ? `${(y[2] / x[2]).toPrecision(3)} \u00d7` : "";
      return made("tr", [made("th", title, { scope: "row" }), made("td", x?.[1] ?? "\u2014", { class: "number" }), made("td", y?.[1] ?? "\u2014", { class: "number" }), made("td", ratio, { class: "number" })]);
    });
    const head = (titles) => made("thead", made("tr", titles.map((title, i) => made("th", title, { scope: "col", ...(i && titles.length === 4 ? { class: "number" } : {}) }))));
    const changes = [...differing(first.spec, second.spec, "")];
    const side = (name, { drawing }) => made("div", [made("h3", made("a", name, { href: link(name) })), drawn(drawing, name)]);
    const scroll = (inner, label) => made("div", inner, { class: "scroll", tabindex: 0, role: "region", "aria-label": label });
    views.pair.replaceChildren(
      made("p", made("a", "\u2190 All models", { href: "#" })),
      made("h2", `${a} and ${b}`, { tabindex: -1 }),
      made("h3", "Costs"),
      scroll(made("table", [head(["", a, b, "ratio"]), made("tbody", rows)], { id: "costs-of-pair" }), "Costs"),
      counted(),
      made("h3", "Specs"),
      changes.length
        ? scroll(made("table", [head(["spec", a, b]), made("tbody", changes.map(([path, x, y]) => made("tr", [made("td", made("code", path)), made("td", text(x)), made("td", text(y))])))], { id: "specs-of-pair" }), "Differences of the specs")
        : made("p", "Both specs are the same."),
      made("h3", "Drawings"),
      made("div", [side(a, first), side(b, second)], { class: "sides" }),
      program(`zoo diff ${a} ${b}`),
    );
  }

  // ---------------------------------------------------------------------------------------------- the tree

  const lines = [...document.querySelectorAll("#tree .descent")];
  const parentOf = new Map(lines.map((line) => [line.dataset.to, line]));
  function light(name) {
    for (const lit of document.querySelectorAll("#tree .lit")) lit.classList.remove("lit");
    for (let line = parentOf.get(name); line; line = parentOf.get(line.dataset.from)) {
      line.classList.add("lit");
      line.parentElement.append(line);
      document.querySelector(`#tree [data-node="${CSS.escape(line.dataset.from)}"]`)?.classList.add("lit");
    }
    for (const node of document.querySelectorAll("#tree a.lit")) node.parentElement.append(node);
  }
  for (const node of document.querySelectorAll("#tree [data-node]")) {
    node.addEventListener("mouseenter", () => light(node.dataset.node));
    node.addEventListener("focus", () => light(node.dataset.node));
  }

  // ---------------------------------------------------------------------------------------------- what is shown

  function go(hash) {
    location.hash = encodeURIComponent(hash);
  }

  let place = 0; // where the cards were left
  let shown = null;
  async function follow() {
    const hash = decodeURIComponent(location.hash.slice(1));
    const pair = hash.split("~");
    const view = hash === "tree" ? "tree" : pair.length === 2 && pair.every((name) => cards[name]) ? "pair" : cards[hash] ? "model" : "cards";
    if (shown === "cards" && view !== "cards") place = scrollY;
    if (view === "model") await showModel(hash);
    if (view === "pair") await showPair(...pair);
    for (const [name, section] of Object.entries(views)) section.hidden = name !== view;
    for (const tab of document.querySelectorAll("[data-view]")) tab.toggleAttribute("aria-current", tab.dataset.view === view);
    document.title = view === "model" || view === "pair" ? `${pair.join(" and ")} \u00b7 Gallery of architectures` : "Gallery of architectures";
    bar.hidden = view !== "cards" || picked.size === 0;
    if (shown !== null && view !== "cards") scrollTo(0, view === "tree" ? 0 : views[view].offsetTop - 60);
    else if (shown !== null) scrollTo(0, place);
    if (shown !== null) views[view].querySelector("h2[tabindex]")?.focus({ preventScroll: true });
    shown = view;
  }

  function arrange() {
    grid.append(...sorted().map((name) => items.get(name)));
    filter();
  }

  document.querySelector(".filters").addEventListener("submit", (event) => event.preventDefault());
  search.addEventListener("input", filter);
  order.addEventListener("change", arrange);
  for (const select of selects) select.addEventListener("change", filter);
  none.lastElementChild.addEventListener("click", () => {
    search.value = "";
    for (const select of selects) select.value = "";
    filter();
    search.focus();
  });
  addEventListener("hashchange", follow);
  arrange();
  for (const item of items.values()) seen.observe(item);
  follow();
}
