// Generate, or embed, with transformers.js: a request on stdin, the answers on stdout.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const transformers = createRequire(`${process.cwd()}/`)("@huggingface/transformers"); // as installed where this runs
transformers.env.allowRemoteModels = false;

const request = JSON.parse(readFileSync(0, "utf-8"));
const model = await transformers[request.class_name].from_pretrained(request.directory);
const tokenizer = await transformers.AutoTokenizer.from_pretrained(request.directory);
const numbers = (tensor) => tensor.tolist().map((row) => row.map(Number));

// The vectors of each text; or the tokens after it, and the first text as the tokenizer gives it back.
async function answer(texts) {
  const batch = tokenizer(texts, { padding: true });
  const count = request.new_tokens;
  if (count === undefined) return { vectors: (await model(batch)).last_hidden_state.tolist() };
  const length = { min_new_tokens: count, max_new_tokens: count };
  const found = await model.generate({ ...batch, ...length, do_sample: false, ...request.options });
  const tokens = numbers(found).map((row) => row.slice(-count));
  return { tokens, echo: tokenizer.decode(numbers(batch.input_ids)[0]) };
}

const answers = [];
for (const texts of request.batches) answers.push(await answer(texts));
console.log(JSON.stringify(answers));
