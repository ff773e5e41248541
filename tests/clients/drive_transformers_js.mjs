// Answer a request on stdin with transformers.js: the answers go to stdout.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

import { answersTo } from "./answer_transformers_js.mjs";

const transformers = createRequire(`${process.cwd()}/`)("@huggingface/transformers"); // as installed where this runs
transformers.env.allowRemoteModels = false;

console.log(JSON.stringify(await answersTo(transformers, JSON.parse(readFileSync(0, "utf-8")))));
