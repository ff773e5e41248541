// Load an export of layout transformers-js from a directory of this server, and run it on a device.

import * as transformers from "@huggingface/transformers";

import { hideNarrowSubgroups } from "./subgroups.js";

const { env } = transformers;
env.allowRemoteModels = false; // nothing is loaded from elsewhere
env.allowLocalModels = true;
env.localModelPath = new URL("./", document.baseURI).pathname; // a path: with an address, it does not find the tokenizer
env.useBrowserCache = false; // a directory that is exported anew is loaded anew
env.backends.onnx.wasm.wasmPaths = new URL("./node_modules/onnxruntime-web/dist/", document.baseURI).href;

hideNarrowSubgroups();

const RATE = 16000;

// What a model is, by the class that its config.json names.
async function kindOf(directory) {
  const response = await fetch(new URL(`${directory}/config.json`, document.baseURI));
  if (!response.ok) throw new Error(`${directory}/config.json: ${response.status} ${response.statusText}. Export with --layout transformers-js.`);
  const { architectures: [name] } = await response.json();
  if (name.startsWith("Whisper") || name.startsWith("Moonshine")) return "AutoModelForSpeechSeq2Seq";
  if (name.endsWith("ForConditionalGeneration") || name === "MarianMTModel") return "AutoModelForSeq2SeqLM";
  if (name.endsWith("ForCausalLM") || name.endsWith("LMHeadModel")) return "AutoModelForCausalLM";
  return "AutoModel";
}

// The model of a directory: it embeds texts, continues them, or transcribes recordings.
export async function load(directory, device) {
  if (device === "webgpu" && !(await navigator.gpu?.requestAdapter())) {
    throw new Error("This browser has no WebGPU adapter. Choose WebAssembly.");
  }
  const kind = await kindOf(directory);
  const model = await transformers[kind].from_pretrained(directory, { device });
  if (kind === "AutoModelForSpeechSeq2Seq") {
    const processor = await transformers.AutoProcessor.from_pretrained(directory);
    return { run: (input, tokens) => transcribed(model, processor, input.samples, tokens) };
  }
  const tokenizer = await transformers.AutoTokenizer.from_pretrained(directory);
  const run = kind === "AutoModel" ? (input) => embedded(model, tokenizer, input.text) : (input, tokens) => continued(model, tokenizer, input.text, tokens);
  return { run };
}

async function embedded(model, tokenizer, text) {
  const outputs = await model(tokenizer(text));
  return { vectors: (outputs.last_hidden_state ?? Object.values(outputs)[0]).tolist() };
}

async function continued(model, tokenizer, text, tokens) {
  const inputs = tokenizer(text);
  const found = await model.generate({ ...inputs, max_new_tokens: tokens, do_sample: false });
  const ids = found.tolist()[0].map(Number);
  return { text: tokenizer.decode(ids, { skip_special_tokens: true }), tokens: ids };
}

async function transcribed(model, processor, samples, tokens) {
  const inputs = await processor(samples);
  const found = await model.generate({ ...inputs, max_new_tokens: tokens, do_sample: false });
  const ids = found.tolist()[0].map(Number);
  return { text: processor.tokenizer?.decode(ids, { skip_special_tokens: true }) ?? null, tokens: ids };
}

// The samples of a recording at 16 kHz, mixed down to one channel.
export async function samplesOf(file) {
  const context = new OfflineAudioContext(1, 1, RATE);
  const audio = await context.decodeAudioData(await file.arrayBuffer());
  const mixed = new OfflineAudioContext(1, Math.ceil(audio.duration * RATE), RATE);
  const source = mixed.createBufferSource();
  source.buffer = audio;
  source.connect(mixed.destination);
  source.start();
  return (await mixed.startRendering()).getChannelData(0);
}
