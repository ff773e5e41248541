// The table of a zoo: search, filters, order, and the details of one artefact at a time.
{
  const body = document.querySelector("#artefacts tbody");
  const rows = [...body.rows];
  const facets = new Map(rows.map((row) => [row, JSON.parse(row.dataset.facets)]));
  const search = document.getElementById("search");
  const selects = [...document.querySelectorAll("[data-facet]")];
  const count = document.getElementById("count");
  const none = document.getElementById("none");
  let wanted = null; // the row whose details are shown, or on their way
  let open = null; // the row whose details are shown

  function close() {
    wanted = null;
    if (!open) return;
    open.querySelector("button").setAttribute("aria-expanded", "false");
    open.nextElementSibling.remove();
    open = null;
  }

  function filter() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const own = facets.get(row);
      const fits =
        words.every((word) => row.dataset.search.includes(word)) &&
        selects.every((select) => !select.value || own[select.dataset.facet] === select.value);
      row.hidden = !fits;
      shown += fits;
      if (!fits && row === wanted) close();
    }
    const chosen = selects.filter((select) => select.value).map((select) => `${select.dataset.facet} ${select.value}`);
    none.hidden = shown > 0;
    none.nextElementSibling.hidden = shown === 0;
    none.firstElementChild.textContent = `No artefact matches ${[...(words.length ? [`\u201c${search.value.trim()}\u201d`] : []), ...chosen].join(" and ")}.`;
    count.textContent = `${shown.toLocaleString("en-US")} of ${rows.length.toLocaleString("en-US")} artefacts`;
  }

  const key = (row, column) => row.cells[column].dataset.value ?? row.cells[column].textContent;

  function sort(head) {
    close();
    const ascending = head.getAttribute("aria-sort") !== "ascending";
    for (const each of head.parentElement.cells) each.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    const sign = ascending ? 1 : -1;
    const order = new Intl.Collator("en", { numeric: true });
    rows.sort((a, b) => sign * order.compare(key(a, head.cellIndex), key(b, head.cellIndex)));
    body.append(...rows);
  }

  async function unpacked(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
  }

  async function show(row) {
    close();
    wanted = row;
    const [model, artefact] = DETAILS.artefacts[row.dataset.name];
    const parts = await Promise.all([artefact, DETAILS.models[model]].map(unpacked));
    if (row !== wanted || row === open) return; // closed meanwhile, or another row chosen
    const detail = body.insertRow(row.sectionRowIndex + 1);
    detail.className = "detail";
    const cell = detail.insertCell();
    cell.colSpan = row.cells.length;
    const inner = document.createElement("div");
    inner.innerHTML = parts.map((part) => `<div>${part}</div>`).join(""); // HTML of this page's own making, with all text escaped
    cell.append(inner);
    open = row;
    row.querySelector("button").setAttribute("aria-expanded", "true");
  }

  // Open a row, or close the one that is open: a step of the browser's history, which Back takes back.
  function step(row) {
    const name = row === wanted ? "" : row.dataset.name;
    history.pushState({ name }, "", name ? `#${encodeURIComponent(name)}` : location.pathname + location.search);
    follow();
  }

  // Show what the address names.
  function follow() {
    const name = decodeURIComponent(location.hash.slice(1));
    const row = rows.find((each) => each.dataset.name === name);
    if (!row) return close();
    if (row.hidden) clear();
    return row === wanted ? null : show(row);
  }

  function clear() {
    search.value = "";
    for (const select of selects) select.value = "";
    filter();
  }

  document.querySelector(".filters").addEventListener("submit", (event) => event.preventDefault());
  search.addEventListener("input", filter);
  for (const select of selects) select.addEventListener("change", filter);
  for (const head of document.querySelectorAll("#artefacts thead th")) {
    head.firstElementChild.addEventListener("click", () => sort(head));
  }
  for (const row of rows) row.querySelector("button").addEventListener("click", () => step(row));
  none.lastElementChild.addEventListener("click", () => {
    clear();
    search.focus();
  });
  addEventListener("popstate", follow);
  filter();
  follow()?.then(() => wanted?.scrollIntoView());
}
