// Where the cursor is in YAML that may be unfinished: the path of keys, and the kinds around it.

const KEY = /^(\s*)((?:- )*)(?:"([^"]*)"|([\w.+-]+))\s*:(?=\s|$)/;

function indentOf(match) {
  return match[1].length + match[2].length;
}

const nameOf = (match) => match[3] ?? match[4];

// The keys of the block mappings around a line, from the root, with their lines.
export function blockPath(lines, row, column) {
  const path = [];
  const own = KEY.exec(lines[row]);
  let indent = own ? indentOf(own) : Math.min(column, lines[row].length - lines[row].trimStart().length);
  if (!lines[row].trim()) indent = column;
  for (let above = row - 1; above >= 0 && indent > 0; above -= 1) {
    const match = KEY.exec(lines[above]);
    if (match && indentOf(match) < indent) {
      path.unshift({ key: nameOf(match), row: above });
      indent = indentOf(match);
    }
  }
  return path;
}

// The keys and values of the flow mapping around a column: nested names, and what is being typed.
function flowPath(text) {
  const stack = [];
  let current = { key: null, entries: [] };
  let word = "";
  let quote = "";
  for (const letter of text) {
    if (quote) {
      if (letter === quote) quote = "";
      word += letter;
    } else if (letter === '"' || letter === "'") {
      quote = letter;
      word += letter;
    } else if (letter === "{" || letter === "[") {
      stack.push(current);
      current = { key: null, entries: [], list: letter === "[" };
      word = "";
    } else if (letter === "}" || letter === "]") {
      current = stack.pop() || { key: null, entries: [] };
      word = "";
    } else if (letter === "," && stack.length) {
      if (current.key !== null) current.entries.push([current.key, word.trim()]);
      current.key = null;
      word = "";
    } else if (letter === ":" && stack.length) {
      current.key = word.trim();
      word = "";
    } else {
      word += letter;
    }
  }
  return { stack, current, word };
}

const KIND = /(?:^|[{,\s])kind:\s*([\w-]+)/;

// The kind that the mapping below a key states, on its line or in the block below it.
function kindBelow(lines, row) {
  const match = KEY.exec(lines[row]);
  const rest = match ? lines[row].slice(match[0].length) : lines[row];
  const open = rest.indexOf("{");
  if (open >= 0) {
    const flat = rest.slice(open + 1).replace(/\{[^{}]*\}/g, "");
    return (KIND.exec(flat) || [])[1];
  }
  const indent = match ? indentOf(match) : -1;
  let inner = null;
  for (let below = row + 1; below < lines.length; below += 1) {
    if (!lines[below].trim() || lines[below].trim().startsWith("#")) continue;
    const found = KEY.exec(lines[below]);
    if (!found || indentOf(found) <= indent) break;
    inner ??= indentOf(found);
    if (indentOf(found) === inner && nameOf(found) === "kind") return lines[below].slice(found[0].length).trim().split(/\s/)[0];
  }
  return undefined;
}

function keysBelow(lines, row, indent) {
  const keys = [];
  for (let below = row + 1; below < lines.length; below += 1) {
    const found = KEY.exec(lines[below]);
    if (!found) continue;
    if (row >= 0 && indentOf(found) < indent) break;
    if (indentOf(found) === indent) keys.push(nameOf(found));
  }
  return keys;
}

// What is at a position: `path` of the mapping, `key` if a value is typed, `word`, the kinds by path, and the keys there.
export function placeAt(text, position) {
  const lines = text.split("\n");
  const before = text.slice(0, position).split("\n");
  const row = before.length - 1;
  const column = before[row].length;
  const head = before[row];
  const around = blockPath(lines, row, column);
  const kinds = new Map();
  around.forEach((step, i) => kinds.set(JSON.stringify(around.slice(0, i + 1).map((each) => each.key)), kindBelow(lines, step.row)));
  const path = around.map((each) => each.key);
  const match = KEY.exec(lines[row]);
  const after = match && column >= match[0].length ? head.slice(match[0].length) : null;
  if (after !== null) {
    const flow = flowPath(after);
    if (!flow.stack.length) return { path, key: nameOf(match), word: after.trimStart(), kinds, keys: [], flow: false };
    const outer = [...path, nameOf(match)];
    kinds.set(JSON.stringify(outer), kindBelow(lines, row));
    for (const level of flow.stack.slice(1)) {
      if (level.key !== null) outer.push(level.key);
    }
    const rest = lines[row].slice(column);
    const inner = flow.current.entries.find(([key]) => key === "kind") || [];
    const later = KIND.exec(rest.split(/[{}]/)[0]) || [];
    if (flow.stack.length > 1) kinds.set(JSON.stringify(outer), inner[1] || later[1]);
    const keys = [...flow.current.entries.map(([key]) => key), ...[...rest.split(/[{}]/)[0].matchAll(/([\w-]+):/g)].map((each) => each[1])];
    if (flow.current.list) return { path: outer, key: null, word: "", kinds, keys, flow: true, list: true };
    return { path: outer, key: flow.current.key, word: flow.word.trimStart(), kinds, keys, flow: true };
  }
  const parent = around.length ? around[around.length - 1].row : -1;
  const indent = match ? indentOf(match) : lines[row].trim() ? lines[row].length - lines[row].trimStart().length : column;
  return { path, key: null, word: head.trimStart().replace(/^(- )+/, ""), kinds, keys: keysBelow(lines, parent, indent), flow: false };
}

// The path of the key or value at a position, for what is linked to it.
export function pathAt(text, position) {
  const lines = text.split("\n");
  const end = /[\w]/.test(text[position] || "") ? position + /^[\w.+-]*/.exec(text.slice(position))[0].length : position;
  const place = placeAt(text, end);
  if (place.key !== null) return [...place.path, place.key];
  const row = text.slice(0, position).split("\n").length - 1;
  const match = KEY.exec(lines[row] || "");
  return match && !place.flow ? [...place.path, nameOf(match)] : place.word ? [...place.path, place.word] : place.path;
}
