// The sizes that the sliders give, and what is a polynomial in them.  Whole numbers are exact: they are BigInts.
const SIZES = (() => {
  const section = document.getElementById("costs");
  const { sizes } = DATA.costs;
  const at = Object.fromEntries(Object.entries(sizes).map(([symbol, size]) => [symbol, BigInt(size.value)]));
  const listeners = [];
  const changed = () => listeners.forEach((listener) => listener());

  // The value of a polynomial at some sizes: a list of coefficients, each with the powers of symbols.
  const evaluate = (terms, where = at) =>
    terms.reduce(
      (sum, [coefficient, powers]) =>
        sum +
        Object.entries(powers).reduce((term, [symbol, power]) => term * where[symbol] ** BigInt(power), BigInt(coefficient)),
      0n,
    );

  // A number with three digits, a prefix and a unit.
  function readable(value, unit) {
    const prefixes = ["", "k", "M", "G", "T", "P", "E", "Z", "Y"];
    let number = Number(value);
    let power = 0;
    while (number >= 999.5 && power < prefixes.length - 1) {
      number /= 1000;
      power += 1;
    }
    const digits = Number.isInteger(number) && !power ? number : number.toPrecision(3);
    return `${digits} ${prefixes[power]}${unit}`.trim();
  }

  function cell(content, tag = "td") {
    const made = document.createElement(tag);
    made.append(...[content].flat());
    return made;
  }

  // A cell that shows a whole number readably, and holds it exactly.
  function figure(value, unit) {
    const made = cell(value === 0n ? "" : readable(value, unit));
    made.className = "number";
    made.dataset.value = value.toString();
    made.title = `${value.toLocaleString("en-US")} ${unit}`;
    return made;
  }

  // A cell that counts.
  function counted(value) {
    const made = cell(value.toLocaleString("en-US"));
    made.className = "number";
    made.dataset.value = value.toString();
    return made;
  }

  // Fill a table with rows of cells under names of columns; columns of figures are named [name, true], and a row about a
  // module has its path and layers as `module`.
  function fill(table, header, rows) {
    const titles = header.map((name) => {
      const made = cell([name].flat()[0], "th");
      made.scope = "col";
      if (Array.isArray(name)) made.className = "number";
      return made;
    });
    const made = rows.map((row) => {
      const line = cell(row, "tr");
      if (row.module) Object.assign(line.dataset, row.module);
      return line;
    });
    table.replaceChildren(cell(cell(titles, "tr"), "thead"), cell(made, "tbody"));
    document.dispatchEvent(new Event("redrawn"));
  }

  // A choice among names, as buttons of which one is on.
  function choose(fieldset, names, first, chosen) {
    for (const name of names) {
      const radio = document.createElement("input");
      Object.assign(radio, { type: "radio", name: fieldset.id, value: name, checked: name === first });
      radio.addEventListener("change", () => chosen(name));
      fieldset.append(cell([radio, ` ${name}`], "label"));
    }
  }

  // The stops of a slider: 1, 2, 3, 4, 6, 8, 12 and so on to the most.
  function stops({ least, most }) {
    if (least === most) return [most];
    const found = least === 0 ? [0] : [];
    for (let power = 1; power < most; power *= 2) {
      found.push(power);
      if (power > 1 && power * 1.5 < most) found.push(power * 1.5);
    }
    return [...found, most];
  }

  for (const label of section.querySelectorAll("[data-symbol]")) {
    const { symbol } = label.dataset;
    const size = sizes[symbol];
    const [slider, exact] = label.querySelectorAll("input");
    const steps = stops(size);
    const nearest = (value) =>
      steps.reduce((best, step, i) => (Math.abs(step - value) < Math.abs(steps[best] - value) ? i : best), 0);
    Object.assign(slider, { min: 0, max: steps.length - 1, step: 1, value: nearest(size.value) });
    Object.assign(exact, { min: size.least, max: size.most, step: 1, value: size.value });
    slider.disabled = exact.disabled = steps.length === 1;
    slider.addEventListener("input", () => {
      exact.value = steps[slider.value];
      judge();
      at[symbol] = BigInt(exact.value);
      changed();
    });
    const fault = document.createElement("small");
    fault.className = "bad";
    fault.setAttribute("role", "alert");
    label.append(fault);
    // While a size is wrong, the figures stay as they were, and look so.
    const judge = () => {
      const valid = exact.checkValidity() && exact.value !== "";
      const whole = (value) => value.toLocaleString("en-US");
      fault.textContent = valid ? "" : `Enter a whole number from ${whole(size.least)} to ${whole(size.most)}. The figures are for ${symbol} = ${whole(at[symbol])}.`;
      label.classList.toggle("wrong", !valid);
      section.classList.toggle("stale", section.querySelector(".wrong") !== null);
      return valid;
    };
    exact.addEventListener("input", () => {
      if (!judge()) return;
      slider.value = nearest(Number(exact.value));
      at[symbol] = BigInt(exact.value);
      changed();
    });
  }

  // Call a function now, and whenever a size changes.
  function follow(listener) {
    listeners.push(listener);
    listener();
  }

  return { at, evaluate, readable, cell, figure, counted, fill, choose, follow };
})();
