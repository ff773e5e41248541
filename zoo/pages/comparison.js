// The losses at a step that the pointer or the arrow keys choose: a rule in the chart, and a number after each name.
{
  const { frame, last, most, curves } = DATA;
  const figure = document.querySelector("#curves figure");
  const svg = figure.querySelector("svg");
  const caption = figure.querySelector("figcaption");
  const keys = [...figure.querySelectorAll(".keys li")];
  const steps = [...new Set(curves.flat().map(([step]) => step))].sort((a, b) => a - b);
  const made = (name, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  const cursor = made("g", { class: "cursor", visibility: "hidden" });
  svg.append(cursor);
  const values = keys.map((key) => {
    const value = document.createElement("output");
    key.append(" ", value);
    return value;
  });
  let index = steps.length - 1;

  const across = (step) => frame.left + (step / last) * (frame.right - frame.left);
  const up = (loss) => frame.bottom - (loss / most) * (frame.bottom - frame.top);
  const nearest = (list, wanted) =>
    list.reduce((best, point) => (Math.abs(point[0] - wanted) < Math.abs(best[0] - wanted) ? point : best), list[0]);

  function show(position) {
    index = Math.max(0, Math.min(steps.length - 1, position));
    const step = steps[index];
    const points = curves.map((curve) => (curve.length ? nearest(curve, step) : null));
    cursor.replaceChildren(
      made("path", { d: `M${across(step)} ${frame.top}V${frame.bottom}` }),
      ...points.flatMap((point) => (point ? [made("circle", { cx: across(point[0]), cy: up(point[1]), r: 3 })] : [])),
    );
    cursor.setAttribute("visibility", "visible");
    caption.textContent = `Step ${step.toLocaleString("en-US")}`;
    points.forEach((point, i) => {
      if (values[i]) values[i].textContent = point ? point[1].toPrecision(3) : "not finite";
    });
    if (!values.length && points[0]) caption.textContent += `: ${points[0][1].toPrecision(3)}`;
  }

  if (steps.length) {
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const x = ((event.clientX - box.x) / box.width) * frame.width;
      const wanted = ((x - frame.left) / (frame.right - frame.left)) * last;
      show(steps.indexOf(nearest(steps.map((step) => [step]), wanted)[0]));
    });
    figure.addEventListener("keydown", (event) => {
      const leap = Math.max(1, Math.round(steps.length / 50));
      const moves = { ArrowLeft: index - leap, ArrowRight: index + leap, Home: 0, End: steps.length - 1 };
      if (!(event.key in moves)) return;
      event.preventDefault();
      show(moves[event.key]);
    });
  }
}
