// Answer requests with transformers.js, each a line on stdin: a line on stdout for each. The rest that is printed goes to stderr.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";

import { answersTo } from "./answer_transformers_js.mjs";

const transformers = createRequire(`${process.cwd()}/`)("@huggingface/transformers"); // as installed where this runs
transformers.env.allowRemoteModels = false;
console.log = console.error;

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(await answersTo(transformers, JSON.parse(line)))}\n`);
}
