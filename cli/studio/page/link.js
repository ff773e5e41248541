// The spec in the fragment of the address, deflated.

function fromBytes(buffer) {
  let binary = "";
  for (const byte of new Uint8Array(buffer)) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

const through = (data, transform) => new Response(new Blob([data]).stream().pipeThrough(transform)).arrayBuffer();

export async function packed(text) {
  return fromBytes(await through(new TextEncoder().encode(text), new CompressionStream("deflate-raw")));
}

const LARGEST = 1_000_000;

export async function unpacked(code) {
  const binary = atob(code.replaceAll("-", "+").replaceAll("_", "/"));
  const data = Uint8Array.from(binary, (letter) => letter.charCodeAt(0));
  const reader = new Blob([data]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  const parts = [];
  let size = 0;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > LARGEST) throw new Error("The spec in the address is too large.");
    parts.push(value);
  }
  return new Blob(parts).text();
}

export function fields() {
  return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
}

export async function fragment(text, rest) {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(rest)) if (value) parameters.set(name, value);
  parameters.set("spec", await packed(text));
  return parameters.toString();
}
