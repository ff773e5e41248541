// The texts that are hard to read: their colour against what lies behind them, as WCAG 2 computes it.
function luminance([r, g, b]) {
  const [x, y, z] = [r, g, b].map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * x + 0.7152 * y + 0.0722 * z;
}

// A colour as the browser paints it: red, green, blue, and opacity.
const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
function painted(colour) {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = colour;
  canvas.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
  return [r, g, b, a / 255];
}

function behind(element) {
  for (let around = element; around; around = around.parentElement) {
    const colour = painted(getComputedStyle(around).backgroundColor);
    if (colour[3] === 1) return colour;
  }
  return [255, 255, 255, 1];
}

// In a drawing, the last shape before a text that holds its middle.
function behindInDrawing(text) {
  const svg = text.closest("svg");
  const box = text.getBoundingClientRect();
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  let found = behind(svg.parentElement);
  for (const shape of svg.querySelectorAll("rect, circle")) {
    if (!(shape.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING)) continue;
    const place = shape.getBoundingClientRect();
    const colour = painted(getComputedStyle(shape).fill);
    if (colour[3] === 1 && place.left <= x && x <= place.right && place.top <= y && y <= place.bottom) found = colour;
  }
  return found;
}

const hard = [];
let count = 0;
for (const element of document.body.querySelectorAll("*")) {
  const own = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.textContent.trim());
  const box = element.getBoundingClientRect();
  if (!own || !box.width || !box.height || element.closest("script, style, title, desc")) continue;
  const drawn = element instanceof SVGElement;
  const colour = painted(drawn ? getComputedStyle(element).fill : getComputedStyle(element).color);
  const ground = drawn ? behindInDrawing(element) : behind(element);
  const [light, dark] = [luminance(colour), luminance(ground)].sort((a, b) => b - a);
  const ratio = (light + 0.05) / (dark + 0.05);
  count += 1;
  if (ratio < 4.5) hard.push(`${ratio.toFixed(2)}: ${element.textContent.trim().slice(0, 40)} (${colour} on ${ground})`);
}
return [count, hard];
