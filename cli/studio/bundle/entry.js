export { EditorState, EditorSelection, StateEffect, StateField, Compartment, Prec, Transaction, RangeSetBuilder } from "@codemirror/state";
export { EditorView, keymap, lineNumbers, highlightActiveLine, highlightActiveLineGutter, drawSelection, hoverTooltip, Decoration, ViewPlugin, highlightSpecialChars } from "@codemirror/view";
export { defaultKeymap, history, historyKeymap, undo, redo, undoDepth, redoDepth, indentWithTab } from "@codemirror/commands";
export { syntaxHighlighting, HighlightStyle, indentOnInput, bracketMatching, foldGutter, foldKeymap, indentUnit, syntaxTree } from "@codemirror/language";
export { yaml } from "@codemirror/lang-yaml";
export { autocompletion, completionKeymap, closeBrackets, closeBracketsKeymap, startCompletion } from "@codemirror/autocomplete";
export { setDiagnostics, lintGutter, lintKeymap, forEachDiagnostic, openLintPanel, nextDiagnostic } from "@codemirror/lint";
export { searchKeymap, highlightSelectionMatches } from "@codemirror/search";
export { tags } from "@lezer/highlight";
