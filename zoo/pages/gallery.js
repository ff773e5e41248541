// The gallery: cards to search and sort, a model with its drawing and figures, two side by side, and the family tree.
// The address says what is shown: # the cards, #tree, #NAME a model, #A~B a pair.  Back goes back.
{
  const { cards, names, of, whole, link, made, parameters, content, showModel, showPair } = GALLERY;
  const views = Object.fromEntries(["cards", "tree", "model", "pair"].map((id) => [id, document.getElementById(id)]));
  const grid = document.querySelector(".cards");
  const search = document.getElementById("search");
  const order = document.getElementById("sort");
  const selects = [...document.querySelectorAll("[data-facet]")];
  const none = document.getElementById("none");
  const bar = document.getElementById("chosen");
  const picked = new Set();


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
