// The YAML editor: completion and hover texts from the schema, problems inline, and a mark on the lines of a part.

import {
  EditorState, EditorView, StateEffect, StateField, Decoration, keymap, lineNumbers, highlightActiveLine,
  highlightActiveLineGutter, drawSelection, hoverTooltip, highlightSpecialChars, defaultKeymap, history, historyKeymap, undo,
  redo, undoDepth, redoDepth, syntaxHighlighting, HighlightStyle, indentOnInput, bracketMatching, indentUnit, yaml,
  autocompletion, completionKeymap, closeBrackets, closeBracketsKeymap, startCompletion, setDiagnostics, lintGutter, lintKeymap, searchKeymap, tags, Transaction,
} from "./codemirror.js";
import { h } from "./dom.js";
import { pathAt, placeAt } from "./place.js";

const theme = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--ground)", height: "100%" },
  ".cm-scroller": { fontFamily: "ui-monospace, 'SF Mono', Menlo, Consolas, 'Liberation Mono', monospace", fontSize: "13px", lineHeight: "1.55" },
  ".cm-content": { caretColor: "var(--text)", paddingBottom: "30vh" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  "&.cm-focused": { outline: "none" },
  ".cm-gutters": { backgroundColor: "var(--ground)", color: "var(--quiet)", border: "0" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--panel)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--selected)" },
  ".cm-tooltip": { backgroundColor: "var(--raised)", color: "var(--text)", border: "1px solid var(--line)", borderRadius: "6px", boxShadow: "var(--shadow)", maxWidth: "min(30rem, 90vw)" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "inherit", maxHeight: "16rem" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--ground)" },
  ".cm-completionInfo": { padding: "0.5rem 0.7rem", fontFamily: "system-ui, sans-serif", fontSize: "0.85rem", whiteSpace: "normal" },
  ".cm-diagnostic": { padding: "0.4rem 0.7rem", fontFamily: "system-ui, sans-serif", fontSize: "0.9rem", whiteSpace: "pre-wrap" },
  ".cm-diagnosticAction": { backgroundColor: "var(--accent)", color: "var(--ground)", borderRadius: "5px", padding: "0.15rem 0.5rem", margin: "0.2rem 0.4rem 0 0" },
  ".cm-linked": { backgroundColor: "var(--linked)", boxShadow: "inset 3px 0 var(--accent)" },
  ".cm-changed": { boxShadow: "inset 3px 0 var(--changed)" },
  ".cm-panels": { backgroundColor: "var(--panel)", color: "var(--text)" },
  ".cm-textfield, .cm-button": { background: "var(--raised)", color: "var(--text)", border: "1px solid var(--line)" },
});

const colours = HighlightStyle.define([
  { tag: tags.propertyName, color: "var(--key)" },
  { tag: tags.definition(tags.propertyName), color: "var(--key)" },
  { tag: [tags.string, tags.content], color: "var(--text)" },
  { tag: tags.comment, color: "var(--quiet)", fontStyle: "italic" },
  { tag: [tags.punctuation, tags.separator, tags.squareBracket, tags.brace], color: "var(--quiet)" },
]);

const linkLines = StateEffect.define();
const markLines = StateEffect.define();

function lineField(effect, name) {
  const decoration = Decoration.line({ class: name });
  return StateField.define({
    create: () => Decoration.none,
    update(lines, transaction) {
      lines = lines.map(transaction.changes);
      for (const each of transaction.effects) {
        if (!each.is(effect)) continue;
        const count = transaction.state.doc.lines;
        const marks = each.value
          .filter((line) => line >= 1 && line <= count)
          .map((line) => decoration.range(transaction.state.doc.line(line).from));
        lines = Decoration.set(marks, true);
      }
      return lines;
    },
    provide: (field) => EditorView.decorations.from(field),
  });
}

const changedLines = lineField(markLines, "cm-changed");

export class Editor {
  constructor(parent, { nonce, schema, changed, moved, presets }) {
    this.schema = schema;
    this.presets = presets;
    this.view = new EditorView({
      parent,
      state: EditorState.create({
        doc: "",
        extensions: [
          EditorView.cspNonce.of(nonce),
          lineNumbers(), highlightSpecialChars(), history(), drawSelection(), indentOnInput(), bracketMatching(), closeBrackets(),
          highlightActiveLine(), highlightActiveLineGutter(), indentUnit.of("  "), EditorState.tabSize.of(2),
          EditorView.lineWrapping, yaml(), syntaxHighlighting(colours), theme, lintGutter(),
          lineField(linkLines, "cm-linked"), changedLines,
          autocompletion({ override: [(context) => this.complete(context)], icons: false, activateOnTyping: true }),
          hoverTooltip((view, position) => this.explain(position), { hoverTime: 250 }),
          keymap.of([...closeBracketsKeymap, ...completionKeymap, ...lintKeymap, ...searchKeymap, ...historyKeymap, ...defaultKeymap]),
          EditorView.contentAttributes.of({ "aria-label": "Spec as YAML. Ctrl+Space completes; Escape, then Tab leaves the editor." }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) changed(this.text);
            if (update.selectionSet || update.docChanged) moved(this.path());
          }),
        ],
      }),
    });
  }

  get text() {
    return this.view.state.doc.toString();
  }

  // Replaces what differs, so that undo and the cursor stay useful.
  put(text) {
    const old = this.text;
    if (text === old) return;
    let from = 0;
    while (from < old.length && from < text.length && old[from] === text[from]) from += 1;
    let end = old.length;
    let until = text.length;
    while (end > from && until > from && old[end - 1] === text[until - 1]) {
      end -= 1;
      until -= 1;
    }
    this.view.dispatch({ changes: { from, to: end, insert: text.slice(from, until) }, userEvent: "input.control" });
  }

  // The first text, which undo does not take away.
  begin(text) {
    this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text }, annotations: Transaction.addToHistory.of(false) });
  }

  undo() {
    undo(this.view);
  }

  redo() {
    redo(this.view);
  }

  depths() {
    return [undoDepth(this.view.state), redoDepth(this.view.state)];
  }

  focus() {
    this.view.focus();
  }

  path() {
    return pathAt(this.text, this.view.state.selection.main.head);
  }

  // Scrolls to some lines and marks them; without focus the cursor stays.
  reveal(first, last, focus) {
    const doc = this.view.state.doc;
    const lines = [];
    for (let line = first; line <= Math.min(last, doc.lines); line += 1) lines.push(line);
    if (!lines.length) return;
    const from = doc.line(lines[0]).from;
    const indent = /^\s*(?:- )?/.exec(doc.line(lines[0]).text)[0].length;
    this.view.dispatch({
      selection: focus ? { anchor: from + indent } : undefined,
      effects: [EditorView.scrollIntoView(from, { y: "center" }), linkLines.of(lines)],
    });
    if (focus) this.view.focus();
  }

  // Marks the lines that differ.  A dispatch measures the page, so none is made where the marks stay.
  mark(lines) {
    const { doc } = this.view.state;
    const marked = new Set();
    this.view.state.field(changedLines).between(0, doc.length, (from) => void marked.add(doc.lineAt(from).number));
    const wanted = new Set(lines);
    if (wanted.size === marked.size && lines.every((line) => marked.has(line))) return;
    this.view.dispatch({ effects: markLines.of([...wanted]) });
  }

  // Shows problems where they are; each of their fixes is a button of the tooltip.
  diagnose(problems) {
    if (!problems.length && !this.wrong) return;
    this.wrong = problems.length;
    const doc = this.view.state.doc;
    const diagnostics = problems.map((problem) => {
      const line = doc.line(Math.min(Math.max(problem.line, 1), doc.lines));
      const from = Math.min(line.from + problem.column - 1, line.to);
      const token = /^("[^"]*"|'[^']*'|[^\s,{}[\]:#]+)/.exec(doc.sliceString(from, line.to));
      return {
        from,
        to: Math.max(from + (token ? token[0].length : 0), Math.min(from + 1, line.to)),
        severity: "error",
        message: [problem.where ? `${problem.where}: ${problem.message}` : problem.message, problem.remedy].filter(Boolean).join("\n"),
        actions: problem.fixes.slice(0, 3).map((fix) => ({ name: fix.label, apply: () => this.put(fix.text) })),
      };
    });
    this.view.dispatch(setDiagnostics(this.view.state, diagnostics));
  }

  kindAt(place) {
    return (path) => place.kinds.get(JSON.stringify(path));
  }

  complete(context) {
    const place = placeAt(this.text, context.pos);
    const word = context.matchBefore(/[\w.+-]*/);
    if (place.list || (!context.explicit && !word.text && place.key === null)) return null;
    const options = place.key === null ? this.keyOptions(place) : this.valueOptions(place);
    return options.length ? { from: word.from, options, validFor: /^[\w.+-]*$/ } : null;
  }

  keyOptions(place) {
    const node = place.path.length ? this.schema.node(place.path, this.kindAt(place)) : this.schema.root;
    const mapping = place.path.length ? this.schema.mapping(node, place.kinds.get(JSON.stringify(place.path))) : node;
    const required = new Set((mapping && mapping.required) || []);
    const properties = Object.entries((mapping && mapping.properties) || {});
    if (!place.path.length) properties.unshift(["extends", { description: "Preset that this spec changes." }]);
    return properties
      .filter(([key]) => !place.keys.includes(key) || key === place.word)
      .map(([key, property]) => ({
        label: key,
        detail: required.has(key) ? "required" : this.hint(property),
        info: () => h("div", {}, property.description || ""),
        apply: (view, completion, from, to) => {
          view.dispatch({ changes: { from, to, insert: `${key}: ` }, selection: { anchor: from + key.length + 2 }, userEvent: "input.complete" });
          startCompletion(view);
        },
        boost: required.has(key) ? 5 : 0,
      }));
  }

  valueOptions(place) {
    if (place.key === "extends") return this.presets.map(([name, summary]) => ({ label: name, detail: summary.slice(0, 60) }));
    if (place.key === "kind") {
      const outer = this.schema.node(place.path, this.kindAt(place)); // whatever the kind is so far
      return this.schema.kinds(outer).map(([kind, text]) => ({ label: kind, info: text, type: "constant" }));
    }
    const node = this.schema.node([...place.path, place.key], this.kindAt(place));
    if (!node) return [];
    const kinds = this.schema.kinds(node);
    if (kinds.length) {
      return kinds.map(([kind, text]) => ({ label: `{kind: ${kind}}`, displayLabel: kind, filterText: kind, info: text, apply: `{kind: ${kind}}` }));
    }
    return this.schema.constants(node).map(([value, text]) => ({ label: String(value), info: text || undefined }));
  }

  hint(property) {
    const kinds = this.schema.kinds(property);
    if (kinds.length) return "kind";
    const type = this.schema.type(property);
    return type.boolean ? "true, false" : type.integer ? "whole number" : type.number ? "number" : type.constants ? "word" : "";
  }

  explain(position) {
    const doc = this.view.state.doc;
    const line = doc.lineAt(position);
    const before = /[\w.+-]*$/.exec(doc.sliceString(line.from, position))[0];
    const after = /^[\w.+-]*/.exec(doc.sliceString(position, line.to))[0];
    const word = before + after;
    if (!word) return null;
    const from = position - before.length;
    const to = position + after.length;
    const isKey = /^\s*:(\s|$)/.test(doc.sliceString(to, line.to));
    const place = placeAt(this.text, to);
    const path = isKey ? [...place.path, word] : place.key === null ? null : [...place.path, place.key];
    if (!path) return null;
    const texts = [];
    const node = this.schema.node(path, this.kindAt(place));
    if (!isKey) {
      const outer = path.length > 1 ? this.schema.node(path.slice(0, -1), this.kindAt(place)) : this.schema.root;
      const known = path[path.length - 1] === "kind" ? this.schema.kinds(outer) : this.schema.constants(node);
      const found = known.find(([value]) => String(value) === word);
      if (found && found[1]) texts.push(found[1]);
    }
    if (node && node.description) texts.push(node.description);
    if (!texts.length) return null;
    return {
      pos: from,
      end: to,
      above: true,
      create: () => ({ dom: h("div", { class: "explained" }, h("b", {}, path.join(".")), texts.map((text) => h("p", {}, text))) }),
    };
  }
}
