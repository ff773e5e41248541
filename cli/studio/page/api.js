// Requests to the studio's server, whose address holds the token.

const address = (name) => new URL(`api/${name}`, document.baseURI);

export async function get(name) {
  const response = await fetch(address(name));
  if (!response.ok) throw new Error(await response.text());
  return response.json();
}

async function send(name, data, signal) {
  return fetch(address(name), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(data),
    signal,
  });
}

async function answered(response) {
  const text = await response.text();
  if (!response.ok) throw new Error(text.startsWith("{") ? JSON.parse(text).error : text);
  return JSON.parse(text);
}

export const post = async (name, data) => answered(await send(name, data));

// Sends bytes, such as the head of a file, with what is said of them in the query.
export async function postBytes(name, query, body) {
  const url = address(name);
  url.search = new URLSearchParams(query);
  return answered(await fetch(url, { method: "POST", headers: { "content-type": "application/octet-stream" }, body }));
}

// Calls `each` with every line of the answer as it comes.
export async function stream(name, data, each, signal) {
  const response = await send(name, data, signal);
  if (!response.ok) await answered(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) if (line) each(JSON.parse(line));
  }
}
