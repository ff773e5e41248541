// ONNX Runtime's fused attention exchanges values within subgroups of at least 8 lanes. Where an adapter has narrower ones, it must not
// see them: its results would be wrong without a word.
export function hideNarrowSubgroups() {
  if (!("GPUAdapter" in globalThis)) return;
  const { get } = Object.getOwnPropertyDescriptor(GPUAdapter.prototype, "features");
  Object.defineProperty(GPUAdapter.prototype, "features", {
    get() {
      const features = get.call(this);
      if (!(this.info.subgroupMinSize < 8)) return features;
      return new Set([...features].filter((name) => !name.startsWith("subgroup")));
    },
  });
}
