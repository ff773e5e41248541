// What the gallery knows of its models, and the views of one model and of a pair.
const GALLERY = (() => {
  const { cards, family, precision } = JSON.parse(document.getElementById("gallery-data").textContent);
  const names = Object.keys(cards);
  const of = (name) => cards[name].index;
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
  const STAGES = { forward: "a forward pass", encode: "the encoder", see: "the image encoder", prefill: "a prompt" };

  function figures(name) {
    const model = of(name);
    const rows = [["parameters", whole(model.parameters), model.parameters]];
    if (model.active_parameters !== model.parameters) rows.push(["active per token", whole(model.active_parameters), model.active_parameters]);
    rows.push([`weights in ${precision}`, readable(model.weights, "B"), model.weights]);
    if (model.cache_per_token) rows.push(["cache per token", readable(model.cache_per_token, "B"), model.cache_per_token]);
    if (model.state) rows.push(["state per sequence", readable(model.state, "B"), model.state]);
    if (model.cache) rows.push([`cache at ${whole(model.tokens)} tokens`, readable(model.cache, "B"), model.cache]);
    for (const [stage, [flops, tokens]] of Object.entries(model.flops)) {
      const title = stage === "step" ? "FLOPs per new token" : `FLOPs of ${STAGES[stage]}, ${whole(tokens)} token${tokens > 1 ? "s" : ""}`;
      rows.push([title, readable(flops, ""), flops]);
    }
    for (const key of ["architecture", "layers", "width"]) rows.push([key, model[key], null]);
    if (model.vocabulary) rows.push(["vocabulary", whole(model.vocabulary), null]);
    if (model.context) rows.push(["context", model.context, null]);
    if (model.year) rows.push(["year", String(model.year), null]);
    return rows;
  }

  // ---------------------------------------------------------------------------------------------- one model

  const table = (rows) =>
    made("table", rows.map(([title, text]) => made("tr", [made("th", title, { scope: "row" }), made("td", text)])), { class: "figure-table" });

  function drawn(drawing, name) {
    const around = made("div", [], { class: "scroll", tabindex: 0, role: "region", "aria-label": `Drawing of ${name}` });
    around.innerHTML = drawing; // of this page's own making, with all text escaped
    const svg = around.querySelector("svg");
    svg.style.minWidth = `${0.6 * svg.getAttribute("width")}px`; // below which it scrolls
    return around;
  }

  function program(text) {
    return made("div", [made("button", "Copy", { type: "button", class: "copy" }), made("pre", made("code", text))], { class: "program" });
  }

  const counted = () => made("p", `Each parameter counts once. FLOPs are those of matrix products, for one sequence; its cache is in ${precision}, with latent attention as keys and values of all heads.`, { class: "quiet" });

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
      picker(name, (other) => (location.hash = link(`${name}~${other}`))),
    ]);
    document.getElementById("model").replaceChildren(
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
    document.getElementById("pair").replaceChildren(
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

  return { cards, names, of, whole, link, made, parameters, content, showModel, showPair };
})();
