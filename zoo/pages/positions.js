// Heat maps and dials of positions.
{
  const section = document.getElementById("positions");

  // The colours of the lowest value, of 0 and of the highest, as the page shows them now.
  function colours() {
    const probe = document.createElement("span");
    section.append(probe);
    const found = ["low", "zero", "high"].map((name) => {
      probe.style.color = `var(--${name})`;
      return getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map(Number);
    });
    probe.remove();
    return found;
  }

  const mixed = (a, b, share) => a.map((value, i) => value + (b[i] - value) * share);

  function paint(canvas, map, levels) {
    const [low, zero, high] = colours();
    const [rows, columns] = map.shape;
    canvas.width = columns;
    canvas.height = rows;
    const context = canvas.getContext("2d");
    const image = context.createImageData(columns, rows);
    for (let i = 0; i < levels.length; i += 1) {
      const value = (levels[i] - 127) / 127;
      const colour = value < 0 ? mixed(zero, low, -value) : mixed(zero, high, value);
      image.data.set([...colour, 255], 4 * i);
    }
    context.putImageData(image, 0, 0);
  }

  function heatMap(figure, map) {
    const canvas = figure.querySelector("canvas");
    const caption = figure.querySelector("figcaption");
    const levels = Uint8Array.from(atob(map.values), (letter) => letter.charCodeAt(0));
    const [rows, columns] = map.shape;
    const [rowName, columnName] = map.names;
    const about =
      `rows: ${rowName} 0 to ${rows - 1}, from top to bottom; ` +
      `columns: ${columnName} ${map.columns[0]} to ${map.columns[columns - 1]}`;
    const [least, most] = figure.querySelectorAll(".scale span");
    const round = (value) => Number(value.toPrecision(3)).toString();
    least.textContent = round(-map.largest);
    most.textContent = round(map.largest);
    caption.textContent = about;
    canvas.addEventListener("mousemove", (event) => {
      const box = canvas.getBoundingClientRect();
      const row = Math.min(rows - 1, Math.max(0, Math.floor(((event.clientY - box.top) / box.height) * rows)));
      const column = Math.min(columns - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * columns)));
      const value = ((levels[row * columns + column] - 127) / 127) * map.largest;
      caption.textContent = `${rowName} ${row}, ${columnName} ${map.columns[column]}: ${value.toFixed(2)}`;
    });
    canvas.addEventListener("mouseleave", () => {
      caption.textContent = about;
    });
    return () => paint(canvas, map, levels);
  }

  const SVG = "http://www.w3.org/2000/svg";

  function element(name, attributes) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  }

  function dials(figure, data) {
    const slider = figure.querySelector("input");
    const output = figure.querySelector("output");
    const faces = figure.querySelector(".faces");
    slider.max = data.last;
    slider.value = Math.min(100, data.last);
    const hands = data.pairs.map(({ pair, frequency }) => {
      const face = element("svg", { viewBox: "-22 -22 44 58", "aria-hidden": "true" });
      const arc = element("path", { class: "turned" });
      const hand = element("path", { class: "hand" });
      const label = element("text", { y: 33, "text-anchor": "middle" });
      label.textContent = `pair ${pair}`;
      face.append(element("circle", { r: 20 }), arc, hand, label);
      faces.append(face);
      return { frequency, arc, hand };
    });
    function turn() {
      const position = Number(slider.value);
      output.textContent = position.toLocaleString("en-US");
      for (const { frequency, arc, hand } of hands) {
        const angle = (position * frequency) % (2 * Math.PI);
        const [x, y] = [18 * Math.cos(angle), -18 * Math.sin(angle)];
        hand.setAttribute("d", `M0 0L${x} ${y}`);
        arc.setAttribute("d", `M0 0L18 0A18 18 0 ${angle > Math.PI ? 1 : 0} 0 ${x} ${y}Z`);
      }
    }
    slider.addEventListener("input", turn);
    turn();
  }

  const painters = [];
  section.querySelectorAll("article").forEach((article, i) => {
    const data = DATA.positions[i];
    article.querySelectorAll("figure:has(canvas)").forEach((figure, j) => painters.push(heatMap(figure, data.maps[j])));
    const turning = article.querySelector(".dials");
    if (turning) dials(turning, data.dials);
  });
  const repaint = () => painters.forEach((painter) => painter());
  new MutationObserver(repaint).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  repaint();
}
