import { load, samplesOf } from "./run.js";

const form = document.querySelector("form");
const status = document.querySelector("[role=status]");
const result = document.querySelector("#result");
const loaded = new Map();

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const { directory, device, text, tokens, recording } = Object.fromEntries(new FormData(form));
  const button = form.querySelector("button");
  button.disabled = true;
  result.textContent = "";
  try {
    const name = `${directory} ${device}`;
    if (!loaded.has(name)) {
      status.textContent = "Loading …";
      loaded.set(name, await load(directory, device));
    }
    status.textContent = "Running …";
    const samples = recording.size ? await samplesOf(recording) : null;
    const start = performance.now();
    const found = await loaded.get(name).run({ text, samples }, Number(tokens));
    status.textContent = `Done in ${Math.round(performance.now() - start)} ms on ${device}.`;
    result.textContent = found.text ?? JSON.stringify(found);
    result.dataset.found = JSON.stringify(found);
  } catch (error) {
    status.textContent = `Failed: ${error.message ?? error}`;
  }
  button.disabled = false;
});
