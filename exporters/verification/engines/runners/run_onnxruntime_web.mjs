// ONNX Runtime for the web, in WebAssembly: what browsers run, in node. The protocol is that of protocol.py.
// The argument is the folder whose node_modules has onnxruntime-web.

import fs from "node:fs";
import path from "node:path";
import readline from "node:readline";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const WORDS = 2000;
const TYPES = {
  "<f4": ["float32", Float32Array],
  "<f8": ["float64", Float64Array],
  "<f2": ["float16", Uint16Array],
  "<i8": ["int64", BigInt64Array],
  "<i4": ["int32", Int32Array],
  "|i1": ["int8", Int8Array],
  "|u1": ["uint8", Uint8Array],
  "|b1": ["bool", Uint8Array],
};
const DTYPES = Object.fromEntries(Object.entries(TYPES).map(([dtype, [type]]) => [type, dtype]));

console.log = console.info = console.debug = console.error; // answers alone go to standard output
const here = path.resolve(process.argv[2], "runner.js");
const entry = createRequire(here).resolve("onnxruntime-web");
const ort = await import(pathToFileURL(entry));
const sessions = new Map();

async function start() {
  ort.env.wasm.numThreads = 1;
  ort.env.logLevel = "fatal";
  return { version: ort.env.versions.web };
}

async function load({ graph, path: file, options }) {
  const externalData = options.data.map((name) => ({
    path: name,
    data: new Uint8Array(fs.readFileSync(path.join(path.dirname(file), name))),
  }));
  const settings = { executionProviders: ["wasm"], externalData, extra: { session: {} } };
  for (const [key, value] of Object.entries(options.entries)) {
    const [, name] = key.split("session.");
    if (name) settings.extra.session[name] = value;
  }
  await sessions.get(graph)?.release();
  sessions.set(graph, await ort.InferenceSession.create(new Uint8Array(fs.readFileSync(file)), settings));
  return {};
}

async function run({ graph, tensors, file, answer }) {
  const data = fs.readFileSync(file);
  const feeds = {};
  for (const { name, dtype, shape, offset } of tensors) {
    const [type, ArrayType] = TYPES[dtype];
    const bytes = shape.reduce((product, dim) => product * dim, 1) * ArrayType.BYTES_PER_ELEMENT;
    const own = data.buffer.slice(data.byteOffset + offset, data.byteOffset + offset + bytes);
    feeds[name] = new ort.Tensor(type, new ArrayType(own), shape);
  }
  const session = sessions.get(graph);
  const outputs = await session.run(feeds);
  const said = [];
  const parts = [];
  let offset = 0;
  for (const name of session.outputNames) {
    const { type, data: values, dims } = outputs[name];
    const bytes = Buffer.from(values.buffer, values.byteOffset, values.byteLength);
    said.push({ name, dtype: DTYPES[type], shape: dims, offset });
    parts.push(bytes);
    offset += bytes.length;
  }
  fs.writeFileSync(answer, Buffer.concat(parts));
  return { tensors: said };
}

const doing = { start, load, run };
for await (const line of readline.createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  let answer;
  try {
    answer = await doing[request.do](request);
  } catch (error) {
    const words = String(error?.message ?? error).trim().slice(0, WORDS);
    const node = words.match(/Name:'([^']+)'|node with name '([^']+)'/);
    answer = { refused: words, node: node ? (node[1] ?? node[2]) : "" };
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
}
