// Draws ATTENTION: for each stack a table of small maps, and the chosen one large, with the labels of its tokens; where keys are
// patches, also the attention of the query pointed at over their image.
{
  const UNSEEN = 255;
  const root = document.documentElement;
  const preferred = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : preferred.matches);
  const drawings = [];

  const element = (name, attributes = {}, ...children) => {
    const made = Object.assign(document.createElement(name), attributes);
    made.append(...children);
    return made;
  };
  const variable = (name) => {
    const probe = element("span");
    probe.style.color = `var(${name})`;
    document.body.append(probe);
    const color = getComputedStyle(probe).color;
    probe.remove();
    return color;
  };
  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const rgb = (color) => [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));

  // The colours of all bytes, in steps of equal share between those of the ramp.
  const palette = () => {
    const ramp = ATTENTION.ramps[isDark() ? "dark" : "light"].map(rgb);
    return Array.from({ length: UNSEEN }, (_, byte) => {
      const at = (byte / (UNSEEN - 1)) * (ramp.length - 1);
      const first = Math.min(Math.floor(at), ramp.length - 2);
      return ramp[first].map((low, channel) => low + (ramp[first + 1][channel] - low) * (at - first));
    });
  };

  const drawSmall = (canvas, weights, colors) => {
    const context = canvas.getContext("2d");
    const image = context.createImageData(canvas.width, canvas.height);
    weights.forEach((byte, place) => {
      if (byte === UNSEEN) return;
      image.data.set([...colors[byte], 255], 4 * place);
    });
    context.putImageData(image, 0, 0);
  };

  const FONT = "12px system-ui, sans-serif";
  const LONGEST = 24;
  const cut = (label) => (label.length > LONGEST ? `${label.slice(0, LONGEST - 1)}…` : label);

  // Where things stand in a large map, in CSS pixels.
  const layout = (stack) => {
    const context = element("canvas").getContext("2d");
    context.font = FONT;
    const widest = (labels) => Math.ceil(Math.max(...labels.map((label) => context.measureText(cut(label)).width))) + 8;
    const most = Math.max(stack.rows.length, stack.columns.length);
    const cell = Math.max(2, Math.min(26, Math.floor(620 / most)));
    return { cell, left: widest(stack.rows), below: widest(stack.columns), every: Math.ceil(13 / cell) };
  };

  const drawLarge = (canvas, stack, weights, colors) => {
    const { cell, left, below, every } = layout(stack);
    const [width, height] = [left + cell * stack.columns.length + 1, cell * stack.rows.length + below + 1];
    const scale = devicePixelRatio || 1;
    Object.assign(canvas, { width: width * scale, height: height * scale });
    Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
    const context = canvas.getContext("2d");
    context.scale(scale, scale);
    weights.forEach((byte, place) => {
      if (byte === UNSEEN) return;
      const [row, column] = [Math.floor(place / stack.columns.length), place % stack.columns.length];
      context.fillStyle = `rgb(${colors[byte].join(" ")})`;
      context.fillRect(left + column * cell, row * cell, cell, cell);
    });
    context.strokeStyle = variable("--line");
    context.strokeRect(left - 0.5, 0.5, cell * stack.columns.length + 1, cell * stack.rows.length);
    Object.assign(context, { font: FONT, fillStyle: variable("--text"), textAlign: "right", textBaseline: "middle" });
    stack.rows.forEach((label, row) => {
      if (row % every === 0) context.fillText(cut(label), left - 5, (row + 0.5) * cell);
    });
    stack.columns.forEach((label, column) => {
      if (column % every) return;
      context.save();
      context.translate(left + (column + 0.5) * cell, cell * stack.rows.length + 5);
      context.rotate(-Math.PI / 2);
      context.fillText(cut(label), 0, 0);
      context.restore();
    });
  };

  const percent = (byte, whole) => `${((100 * byte * whole) / (UNSEEN - 1)).toFixed(whole < 1 ? 1 : 0)} %`;

  // The attention of a query over an image, which is faded: the larger a weight, the more opaque its patch.
  const OVER = 320;
  const drawOver = (canvas, { image, columns: keys }, weights, query, colors) => {
    const { rows, columns, first, height, width } = image;
    const cell = Math.max(1, Math.floor(OVER / Math.max(rows, columns)));
    Object.assign(canvas, { width: cell * columns, height: cell * rows });
    const context = canvas.getContext("2d");
    const source = element("canvas", { width, height });
    const pixels = source.getContext("2d").createImageData(width, height);
    const least = isDark() ? 0 : 95;
    bytes(image.pixels).forEach((grey, place) => {
      const faded = least + 0.625 * grey;
      pixels.data.set([faded, faded, faded, 255], 4 * place);
    });
    source.getContext("2d").putImageData(pixels, 0, 0);
    context.drawImage(source, 0, 0, canvas.width, canvas.height);
    const own = weights.subarray(query * keys.length + first, query * keys.length + first + rows * columns);
    const shares = [...own].map((byte) => (byte === UNSEEN ? 0 : byte));
    const most = Math.max(1, ...shares);
    context.fillStyle = `rgb(${colors[UNSEEN - 1].join(" ")})`;
    shares.forEach((byte, place) => {
      context.globalAlpha = (0.85 * byte) / most;
      context.fillRect(cell * (place % columns), cell * Math.floor(place / columns), cell, cell);
    });
    return Math.max(...shares);
  };

  const show = (stack) => {
    const large = element("canvas");
    const caption = element("figcaption");
    const figure = element("figure", {}, caption, large);
    const over = element("canvas");
    const overCaption = element("figcaption");
    if (stack.image) figure.append(overCaption, over);
    let [chosen, query] = [null, 0];
    const drawQuery = (colors) => {
      if (!stack.image) return;
      const most = drawOver(over, stack, chosen.weights, query, colors);
      overCaption.textContent = `“${stack.rows[query]}” over the image: up to ${percent(most, chosen.head.whole)}`;
      over.setAttribute("role", "img");
      over.setAttribute("aria-label", `Attention weights of ${chosen.head.title}, ${overCaption.textContent}`);
    };
    const describe = () =>
      caption.replaceChildren(
        element("b", { textContent: chosen.head.title }),
        ` ${chosen.head.entropy.toFixed(2)} of ${chosen.uniform.toFixed(2)} bits`,
      );
    const choose = (button, head, uniform, weights) => {
      chosen?.button.setAttribute("aria-pressed", "false");
      button.setAttribute("aria-pressed", "true");
      chosen = { button, head, uniform, weights };
      large.setAttribute("role", "img");
      large.setAttribute("aria-label", `Attention weights of ${head.title}`);
      drawLarge(large, stack, weights, palette());
      drawQuery(palette());
      describe();
    };
    large.addEventListener("mousemove", (event) => {
      const { cell, left } = layout(stack);
      const [column, row] = [Math.floor((event.offsetX - left) / cell), Math.floor(event.offsetY / cell)];
      const within = column >= 0 && column < stack.columns.length && row < stack.rows.length;
      if (!within) return describe();
      const byte = chosen.weights[row * stack.columns.length + column];
      const share = byte === UNSEEN ? "may not attend to" : `attends ${percent(byte, chosen.head.whole)} to`;
      caption.replaceChildren(
        element("b", { textContent: chosen.head.title }),
        element("br"),
        `“${stack.rows[row]}” (${row}) ${share} “${stack.columns[column]}” (${column})`,
      );
      if (row !== query) {
        query = row;
        drawQuery(palette());
      }
    });
    large.addEventListener("mouseleave", describe);

    const names = [...new Set(stack.layers.flatMap((layer) => layer.heads.map((head) => head.name)))];
    const body = element("tbody");
    let first = null;
    for (const layer of stack.layers) {
      const equal = element("span", { textContent: `uniform ${layer.uniform.toFixed(2)}` });
      const row = element("tr", {}, element("th", { scope: "row" }, `layer ${layer.layer}`, equal));
      const byName = new Map(layer.heads.map((head) => [head.name, head]));
      for (const name of names) {
        const cell = element("td");
        row.append(cell);
        const head = byName.get(name);
        if (!head) continue;
        const weights = bytes(head.weights);
        const small = element("canvas", { width: stack.columns.length, height: stack.rows.length });
        const side = 64 / Math.max(stack.columns.length, stack.rows.length);
        Object.assign(small.style, {
          width: `${Math.max(8, side * stack.columns.length)}px`,
          height: `${Math.max(8, side * stack.rows.length)}px`,
        });
        const button = element("button", { type: "button", className: "head", title: head.title }, small, head.entropy.toFixed(2));
        button.setAttribute("aria-pressed", "false");
        button.addEventListener("click", () => choose(button, head, layer.uniform, weights));
        first ??= () => choose(button, head, layer.uniform, weights);
        cell.append(button);
        drawings.push((colors) => drawSmall(small, weights, colors));
      }
      body.append(row);
    }
    const headings = names.map((name) => element("th", { scope: "col", textContent: name === "mean" ? name : `head ${name}` }));
    const table = element("table", {}, element("thead", {}, element("tr", {}, element("th"), ...headings)), body);
    const section = element("section", {}, element("h2", { textContent: stack.title }));
    section.append(element("div", { className: "heads" }, figure, element("div", { className: "scroll" }, table)));
    document.getElementById("stacks").append(section);
    first();
    drawings.push((colors) => drawLarge(large, stack, chosen.weights, colors), drawQuery);
  };

  const redraw = () => {
    const colors = palette();
    for (const draw of drawings) draw(colors);
  };
  ATTENTION.stacks.forEach(show);
  redraw();
  preferred.addEventListener("change", redraw);
  new MutationObserver(redraw).observe(root, { attributeFilter: ["data-theme"] });
}
