// Costs at the sizes that the sliders give, from polynomials in them.  Whole numbers are exact: they are BigInts.
{
  const section = document.getElementById("costs");
  const { sizes, stages } = DATA.costs;
  const names = Object.keys(stages);
  const at = Object.fromEntries(Object.entries(sizes).map(([symbol, size]) => [symbol, BigInt(size.value)]));
  let chosen = names[names.length > 1 ? names.indexOf("prefill") : 0];

  const evaluate = (terms) =>
    terms.reduce(
      (sum, [coefficient, powers]) =>
        sum +
        Object.entries(powers).reduce((term, [symbol, power]) => term * at[symbol] ** BigInt(power), BigInt(coefficient)),
      0n,
    );

  // A number of FLOPs or bytes with three digits and a prefix.
  const readable = (value, unit) => {
    const prefixes = ["", "k", "M", "G", "T", "P", "E", "Z", "Y"];
    let number = Number(value);
    let power = 0;
    while (number >= 999.5 && power < prefixes.length - 1) {
      number /= 1000;
      power += 1;
    }
    const digits = power ? number.toPrecision(3) : number.toString();
    return `${digits} ${prefixes[power]}${unit}`;
  };

  // A cell that shows a number readably, and holds it exactly.
  function figure(value, unit) {
    const cell = document.createElement("td");
    cell.className = "number";
    cell.dataset.value = value.toString();
    cell.title = value.toLocaleString("en-US");
    cell.textContent = value === 0n ? "" : readable(value, unit);
    return cell;
  }

  function text(content, tag = "td") {
    const cell = document.createElement(tag);
    cell.textContent = content;
    return cell;
  }

  function fill(table, header, rows) {
    const head = document.createElement("tr");
    head.append(
      ...header.map(([name, numeric]) => {
        const cell = text(name, "th");
        cell.scope = "col";
        if (numeric) cell.className = "number";
        return cell;
      }),
    );
    const lines = rows.map((cells) => {
      const line = document.createElement("tr");
      line.append(...cells);
      return line;
    });
    const body = document.createElement("tbody");
    body.append(...lines);
    const top = document.createElement("thead");
    top.append(head);
    table.replaceChildren(top, body);
  }

  const mixture = names.some((name) => {
    const [all] = stages[name].rows;
    return JSON.stringify(all.products) !== JSON.stringify(all.active);
  });

  function showStages() {
    const header = [["stage"], ["matrix products", true], ...(mixture ? [["of active experts", true]] : []), ["other", true], ["matrix products, in symbols"]];
    fill(
      section.querySelector("#stages"),
      header,
      names.map((name) => {
        const { about, formula, rows } = stages[name];
        const formulaCell = text("");
        formulaCell.append(text(formula, "code"));
        const stage = text(name);
        const told = text(about, "small");
        told.className = "quiet";
        stage.append(document.createElement("br"), told);
        return [
          stage,
          figure(evaluate(rows[0].products), "FLOP"),
          ...(mixture ? [figure(evaluate(rows[0].active), "FLOP")] : []),
          figure(evaluate(rows[0].elements), "FLOP"),
          formulaCell,
        ];
      }),
    );
  }

  function showModules() {
    const { rows } = stages[chosen];
    const all = Number(evaluate(rows[0].products));
    fill(
      section.querySelector("#modules"),
      [["module"], ["matrix products", true], ["share"], ...(mixture ? [["of active experts", true]] : []), ["other", true]],
      rows.map((row) => {
        const name = text("");
        const label = text(row.name, "code");
        label.style.paddingLeft = `${1.1 * row.level}em`;
        name.append(label);
        const products = evaluate(row.products);
        const share = text("");
        const bar = document.createElement("span");
        bar.className = "bar";
        bar.style.width = `calc((100% - 1.2rem) * ${Number(products) / all})`;
        share.className = "share";
        share.append(bar, text(products ? `${((100 * Number(products)) / all).toFixed(1)} %` : "", "span"));
        return [
          name,
          figure(products, "FLOP"),
          share,
          ...(mixture ? [figure(evaluate(row.active), "FLOP")] : []),
          figure(evaluate(row.elements), "FLOP"),
        ];
      }),
    );
  }

  function show() {
    showStages();
    showModules();
  }

  // The stops of a slider: 1, 2, 3, 4, 6, 8, 12 and so on to the most.
  function stops({ least, most }) {
    if (least === most) return [most];
    const found = least === 0 ? [0] : [];
    for (let power = 1; power < most; power *= 2) found.push(power, ...(power > 1 && power * 1.5 < most ? [power * 1.5] : []));
    return [...found, most];
  }

  for (const label of section.querySelectorAll("[data-symbol]")) {
    const symbol = label.dataset.symbol;
    const size = sizes[symbol];
    const [slider, exact] = label.querySelectorAll("input");
    const steps = stops(size);
    const nearest = (value) => steps.reduce((best, step, i) => (Math.abs(step - value) < Math.abs(steps[best] - value) ? i : best), 0);
    Object.assign(slider, { min: 0, max: steps.length - 1, step: 1, value: nearest(size.value) });
    Object.assign(exact, { min: size.least, max: size.most, step: 1, value: size.value });
    slider.addEventListener("input", () => {
      exact.value = steps[slider.value];
      at[symbol] = BigInt(steps[slider.value]);
      show();
    });
    exact.addEventListener("input", () => {
      if (!exact.checkValidity() || exact.value === "") return;
      slider.value = nearest(Number(exact.value));
      at[symbol] = BigInt(exact.value);
      show();
    });
  }

  const choice = section.querySelector("#stage");
  for (const name of names) {
    const label = document.createElement("label");
    const radio = document.createElement("input");
    Object.assign(radio, { type: "radio", name: "stage", value: name, checked: name === chosen });
    radio.addEventListener("change", () => {
      chosen = name;
      showModules();
    });
    label.append(radio, ` ${name}`);
    choice.append(label);
  }
  show();
}
