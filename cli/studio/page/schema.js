// The JSON schema of the spec language at a place of a spec: what keys and values it takes there.

export class Schema {
  constructor(schema) {
    this.definitions = schema.$defs;
    this.root = this.definitions.Model;
  }

  // The definitions that a node may be: references are followed, alternatives listed.
  alternatives(node) {
    if (!node) return [];
    if (node.$ref) return this.alternatives(this.definitions[node.$ref.split("/").pop()]);
    const either = node.oneOf || node.anyOf;
    return either ? either.flatMap((other) => this.alternatives(other)) : [node];
  }

  kindOf(definition) {
    const kind = definition.properties && definition.properties.kind;
    return kind ? kind.const : undefined;
  }

  // The kinds of a node: [name, description].
  kinds(node) {
    return this.alternatives(node)
      .filter((each) => this.kindOf(each))
      .map((each) => [this.kindOf(each), each.properties.kind.description || each.description || ""]);
  }

  // The mapping that a node is for a value: by its kind, or the one that has the default kind, or the only one.
  mapping(node, kind) {
    const mappings = this.alternatives(node).filter((each) => each.properties || each.additionalProperties);
    return (
      mappings.find((each) => this.kindOf(each) === kind) ||
      mappings.find((each) => each.properties && each.properties.kind && !(each.required || []).includes("kind")) ||
      (mappings.length === 1 || kind === undefined ? mappings[0] : undefined)
    );
  }

  // The node of a key; `kinds` gives the kind at each prefix of a path.
  node(path, kindAt) {
    let node = this.root;
    for (let depth = 0; depth < path.length; depth += 1) {
      const mapping = depth ? this.mapping(node, kindAt(path.slice(0, depth))) : this.root;
      const key = path[depth];
      if (typeof key === "number") {
        const list = this.alternatives(node).find((each) => each.items);
        node = list && list.items;
      } else {
        node = mapping && ((mapping.properties || {})[key] || mapping.additionalProperties);
      }
      if (!node || node === true) return undefined;
    }
    return node;
  }

  // The constants that a node takes: [value, description].
  constants(node) {
    return this.alternatives(node).flatMap((each) => {
      if (each.enum) return each.enum.map((value, i) => [value, (each.enumDescriptions || [])[i] || ""]);
      if (each.type === "boolean") return [[true, ""], [false, ""]];
      if ("const" in each) return [[each.const, each.description || ""]];
      return [];
    });
  }

  type(node) {
    const types = this.alternatives(node);
    const has = (type) => types.some((each) => each.type === type);
    return {
      nullable: has("null"),
      number: has("integer") || has("number"),
      integer: has("integer"),
      boolean: has("boolean"),
      string: types.some((each) => each.type === "string" && !each.enum && !("const" in each)),
      list: has("array"),
      mapping: types.some((each) => each.properties || each.additionalProperties),
      constants: types.some((each) => each.enum || "const" in each),
    };
  }
}
