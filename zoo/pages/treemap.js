// The treemap: modules as areas, squarified (Bruls, Huizing, van Wijk, 2000).
{
  const section = document.getElementById("parameters");
  const map = section.querySelector(".treemap");
  const told = section.querySelector(".told");
  const crumbs = section.querySelector(".crumbs");
  const total = DATA.parameters.count;
  const HEADING = 20;
  const GAP = 2;
  let trail = [DATA.parameters]; // from the model to what is shown

  const share = (node) => {
    const percent = (100 * node.count) / total;
    return percent >= 0.05 ? `${percent.toFixed(1)} %` : percent > 0 ? "< 0.1 %" : "0 %";
  };
  const short = (count) => {
    const units = ["", " k", " M", " B", " T"];
    let power = 0;
    while (count >= 999.5 && power < units.length - 1) {
      count /= 1000;
      power += 1;
    }
    return count.toFixed(power && count < 99.95 ? 1 : 0) + units[power];
  };
  const whole = (count) => count.toLocaleString("en-US");

  function describe(node) {
    const weights = node.weights.map(([name, shape]) => `${name} ${shape}`).join(", ");
    const count = node.times > 1
      ? `${node.times} x ${whole(node.count / node.times)} = ${whole(node.count)}`
      : whole(node.count);
    return [node.path || node.name, node.kind, weights, `${count} parameters`, share(node)].filter(Boolean);
  }

  function tell(node) {
    told.replaceChildren(
      ...describe(node).map((text, i) => {
        const part = document.createElement(i ? "span" : "code");
        part.textContent = text;
        return part;
      }),
    );
  }

  const contains = (node, wanted) => node === wanted || (node.children || []).some((child) => contains(child, wanted));

  // One level towards a node, as far as there is something within.
  function into(node) {
    const shown = trail[trail.length - 1];
    const next = (shown.children || []).find((child) => contains(child, node));
    if (!next || !next.children) return;
    trail = [...trail, next];
    draw();
    focusFirst();
  }

  function out(depth) {
    if (depth < 1) return;
    trail = trail.slice(0, depth);
    draw();
    focusFirst();
  }

  const cells = () => [...map.querySelectorAll("button")];

  function focusFirst() {
    const first = cells()[0];
    if (first) first.focus();
  }

  function cell(node, place) {
    const button = document.createElement("button");
    button.type = "button";
    button.tabIndex = -1;
    button.dataset.path = node.path;
    button.style.background = `var(--${node.role})`;
    button.setAttribute("aria-label", describe(node).join(", "));
    const roomy = place.width > 34 && place.height > 16;
    button.className = roomy ? "roomy" : "";
    if (roomy) {
      const name = document.createElement("b");
      name.textContent = node.name;
      button.append(name);
      if (place.height > 34) {
        const count = document.createElement("span");
        count.textContent = short(node.count);
        button.append(count);
      }
    }
    button.addEventListener("mouseenter", () => tell(node));
    button.addEventListener("focus", () => {
      for (const other of cells()) other.tabIndex = -1;
      button.tabIndex = 0;
      tell(node);
    });
    button.addEventListener("click", () => into(node));
    return button;
  }

  function put(element, place) {
    element.style.left = `${place.x}px`;
    element.style.top = `${place.y}px`;
    element.style.width = `${Math.max(0, place.width - GAP)}px`;
    element.style.height = `${Math.max(0, place.height - GAP)}px`;
    map.append(element);
  }

  function fill(node, place, level) {
    for (const inner of squarified(node.children, place.x, place.y, place.width, place.height)) {
      const roomy = inner.width > 48 && inner.height > 2 * HEADING + 8;
      if (!inner.node.children || !roomy) {
        put(cell(inner.node, inner), inner);
        continue;
      }
      const frame = document.createElement("div");
      frame.className = "frame";
      const heading = document.createElement("span");
      heading.textContent = `${inner.node.name}, ${share(inner.node)}`;
      frame.append(heading);
      frame.addEventListener("mouseenter", () => tell(inner.node));
      frame.addEventListener("click", () => into(inner.node));
      put(frame, inner);
      fill(inner.node, {
        x: inner.x + 3,
        y: inner.y + HEADING,
        width: inner.width - GAP - 4,
        height: inner.height - GAP - HEADING - 1,
      }, level + 1);
    }
  }

  function draw() {
    const shown = trail[trail.length - 1];
    map.replaceChildren();
    if (shown.children) fill(shown, { x: 0, y: 0, width: map.clientWidth, height: map.clientHeight }, 0);
    const first = cells()[0];
    if (first) first.tabIndex = 0;
    crumbs.replaceChildren(
      ...trail.map((node, i) => {
        const last = i === trail.length - 1;
        const crumb = document.createElement(last ? "span" : "button");
        crumb.textContent = node.name;
        if (last) crumb.setAttribute("aria-current", "true");
        else crumb.addEventListener("click", () => out(i + 1));
        return crumb;
      }),
    );
    tell(shown);
    document.dispatchEvent(new Event("redrawn"));
  }

  // The nearest cell whose middle lies in a direction.
  function neighbour(from, dx, dy) {
    const middle = (element) => {
      const box = element.getBoundingClientRect();
      return [box.x + box.width / 2, box.y + box.height / 2];
    };
    const [x, y] = middle(from);
    let best = null;
    let least = Infinity;
    for (const other of cells()) {
      const [a, b] = middle(other);
      const ahead = (a - x) * dx + (b - y) * dy;
      const aside = Math.abs((a - x) * dy) + Math.abs((b - y) * dx);
      if (other !== from && ahead > 1 && ahead + 2 * aside < least) {
        best = other;
        least = ahead + 2 * aside;
      }
    }
    return best;
  }

  map.addEventListener("keydown", (event) => {
    const directions = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (event.key === "Escape" || event.key === "Backspace") {
      event.preventDefault();
      out(trail.length - 1);
    } else if (directions[event.key] && event.target.matches("button")) {
      event.preventDefault();
      const next = neighbour(event.target, ...directions[event.key]);
      if (next) next.focus();
    }
  });
  let width = 0;
  new ResizeObserver(() => {
    if (map.clientWidth === width) return;
    width = map.clientWidth;
    draw();
  }).observe(map);
  width = map.clientWidth;
  draw();
}
