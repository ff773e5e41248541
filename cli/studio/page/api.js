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

export async function post(name, data) {
  const response = await send(name, data);
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

// Calls `each` with every line of the answer as it comes.
export async function stream(name, data, each, signal) {
  const response = await send(name, data, signal);
  if (!response.ok) throw new Error((await response.json()).error);
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
