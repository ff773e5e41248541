// Generate, from texts or images, transcribe, embed, or run a pipeline, with transformers.js, in Node and in browsers.

// The answers to a request; with a device, on it.
export async function answersTo(transformers, request) {
  const where = request.device ? { device: request.device } : {};
  const model = request.class_name && (await transformers[request.class_name].from_pretrained(request.directory, where));
  const tokenizer = request.batches && (await transformers.AutoTokenizer.from_pretrained(request.directory));
  const numbers = (tensor) => tensor.tolist().map((row) => row.map(Number));

  // The vectors of each text; or the tokens after it, and the first text as the tokenizer gives it back.
  async function answer(texts) {
    const batch = tokenizer(texts, { padding: true });
    if (request.new_tokens === undefined) return { vectors: (await model(batch)).last_hidden_state.tolist() };
    return { tokens: await generated(batch), echo: tokenizer.decode(numbers(batch.input_ids)[0]) };
  }

  async function generated(inputs) {
    const count = request.new_tokens;
    const length = { min_new_tokens: count, max_new_tokens: count };
    const found = await model.generate({ ...inputs, ...length, do_sample: false, ...request.options });
    return numbers(found).map((row) => row.slice(-count));
  }

  // The tokens after each image, all of one size.
  function captions({ sizes, values }) {
    return generated({ pixel_values: new transformers.Tensor("float32", Float32Array.from(values), sizes) });
  }

  // The tokens said in a recording of samples.
  function said(samples) {
    return generated({ input_values: new transformers.Tensor("float32", Float32Array.from(samples), [1, samples.length]) });
  }

  // The tokens said in a spectrogram.
  function saidIn({ sizes, values }) {
    return generated({ input_features: new transformers.Tensor("float32", Float32Array.from(values), sizes) });
  }

  // The tokens after some ids, among which are those of images.
  function told({ ids, sizes, values, grids }) {
    const given = new transformers.Tensor("int64", BigInt64Array.from(ids, BigInt), [1, ids.length]);
    const attention_mask = new transformers.Tensor("int64", BigInt64Array.from(ids, () => 1n), [1, ids.length]);
    const pixel_values = new transformers.Tensor("float32", Float32Array.from(values), sizes);
    if (grids) {
      const image_grid_thw = new transformers.Tensor("int64", BigInt64Array.from(grids.flat(), BigInt), [grids.length, 3]);
      return generated({ input_ids: given, attention_mask, pixel_values, image_grid_thw });
    }
    if (sizes.length < 5) return generated({ input_ids: given, attention_mask, pixel_values });
    const pixel_attention_mask = transformers.full([...sizes.slice(0, 2), ...sizes.slice(3)], true); // as of the processor
    return generated({ input_ids: given, attention_mask, pixel_values, pixel_attention_mask });
  }

  // How well each text fits each image, from images of one size.
  async function matches({ texts, sizes, values }) {
    const tokenize = await transformers.AutoTokenizer.from_pretrained(request.directory);
    const pixel_values = new transformers.Tensor("float32", Float32Array.from(values), sizes);
    const found = await model({ ...tokenize(texts, { padding: true }), pixel_values });
    return found.logits_per_image.tolist();
  }

  // The vectors of images, all of one size.
  async function seen({ sizes, values }) {
    const pixel_values = new transformers.Tensor("float32", Float32Array.from(values), sizes);
    return (await model({ pixel_values })).last_hidden_state.tolist();
  }

  // What is said in each recording of samples.
  async function transcripts(recordings) {
    const recognize = await transformers.pipeline("automatic-speech-recognition", request.directory, where);
    const texts = [];
    for (const samples of recordings) texts.push((await recognize(Float32Array.from(samples))).text);
    return texts;
  }

  // What a pipeline makes of each text, of each recording of samples, or of each image of bytes, and the other arguments.
  async function piped({ task, texts = [], recordings = [], images = [], given = [] }) {
    const run = await transformers.pipeline(task, request.directory, where);
    const pictures = images.map(({ bytes, side }) => new transformers.RawImage(Uint8ClampedArray.from(bytes), side, side, 3));
    const found = [];
    for (const input of [...texts, ...recordings.map((samples) => Float32Array.from(samples)), ...pictures]) {
      const made = await run(input, ...given);
      found.push(made instanceof transformers.Tensor ? made.tolist() : made);
    }
    return found;
  }

  const answers = [];
  for (const texts of request.batches ?? []) answers.push(await answer(texts));
  if (request.images) answers.push({ tokens: await captions(request.images) });
  for (const samples of request.heard ?? []) answers.push({ tokens: await said(samples) });
  for (const features of request.spectrograms ?? []) answers.push({ tokens: await saidIn(features) });
  if (request.seen) answers.push({ vectors: await seen(request.seen) });
  if (request.asked) answers.push({ tokens: await told(request.asked) });
  if (request.pairs) answers.push({ scores: await matches(request.pairs) });
  if (request.recordings) answers.push({ texts: await transcripts(request.recordings) });
  if (request.piped) answers.push({ found: await piped(request.piped) });
  return answers;
}
