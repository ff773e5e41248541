// FLOPs of every stage and module at the sizes that the sliders give.
{
  const { evaluate, cell, figure, fill, choose, follow } = SIZES;
  const { stages } = DATA.costs;
  const names = Object.keys(stages);
  let chosen = names.includes("prefill") ? "prefill" : names[0];

  const columns = [["matrix products", true], ["other", true]];
  const figures = ({ products, elements }) => [products, elements].map((terms) => figure(evaluate(terms), "FLOP"));

  follow(() =>
    fill(
      document.getElementById("stages"),
      ["stage", ...columns, "matrix products, formula"],
      names.map((name) => {
        const { about, formula, rows } = stages[name];
        const told = cell(about, "small");
        told.className = "quiet";
        return [cell([name, document.createElement("br"), told]), ...figures(rows[0]), cell(cell(formula, "code"))];
      }),
    ),
  );

  function share(part, all) {
    const bar = cell("", "span");
    bar.className = "bar";
    bar.style.width = `calc((100% - 1.2rem) * ${part / all})`;
    const made = cell([bar, cell(part ? `${((100 * part) / all).toFixed(1)} %` : "", "span")]);
    made.className = "share";
    return made;
  }

  function showModules() {
    const { rows } = stages[chosen];
    const all = Number(evaluate(rows[0].products));
    fill(
      document.getElementById("modules"),
      ["module", ...columns, "share"],
      rows.map((row) => {
        const name = cell(row.name, "code");
        name.style.paddingLeft = `${1.1 * row.level}em`;
        const cells = [cell(name), ...figures(row), share(Number(evaluate(row.products)), all)];
        return Object.assign(cells, { module: { path: row.path, layers: row.layers } });
      }),
    );
  }

  choose(document.getElementById("stage"), names, chosen, (name) => {
    chosen = name;
    showModules();
  });
  follow(showModules);
}
