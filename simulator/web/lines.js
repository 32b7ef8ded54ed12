// SPDX-License-Identifier: Apache-2.0
//
// lines.js - the text of an editor: lines, edits, undo
//
// A place is {line, col}, both from 0, columns in UTF-16 units. sel is {anchor, head}: where a selection began and where the caret is.

export const order = (a, b) => a.line - b.line || a.col - b.col;

const KEPT = 1000;  // edits that can be undone

export class Lines {
  // onChange(line): lines from this one on are others now
  constructor(onChange) {
    this.onChange = onChange;
    this.reset('');
  }
  reset(text) {
    this.lines = text.replace(/\r\n?/g, '\n').split('\n');
    Object.assign(this, {joined: null, done: [], undone: [], apart: true});
    this.onChange(0);
  }
  get text() { return (this.joined ??= this.lines.join('\n')); }
  get end() { return {line: this.lines.length - 1, col: this.lines[this.lines.length - 1].length}; }
  slice(a, b) {
    const l = this.lines;
    if (a.line === b.line) return l[a.line].slice(a.col, b.col);
    return [l[a.line].slice(a.col), ...l.slice(a.line + 1, b.line), l[b.line].slice(0, b.col)].join('\n');
  }

  // Puts text in the place of what stands from a to b. Edits of one kind in a row are undone together. -> where the new text ends
  edit(a, b, text, {sel, kind = ''}) {
    const op = {at: a, removed: this.slice(a, b), inserted: text}, last = this.done[this.done.length - 1];
    if (last && kind && kind === last.kind && !this.apart) last.ops.push(op);
    else this.done.push({ops: [op], kind, sel});
    if (this.done.length > KEPT) this.done.shift();
    this.undone = [];
    this.apart = text.includes('\n');
    return this.splice(a, b, text);
  }
  // What is typed next is undone by itself.
  part() { this.apart = true; }
  // -> the selection to show, null when there is nothing to take back or to do again
  undo() {
    const e = this.done.pop();
    if (!e) return null;
    for (const op of [...e.ops].reverse()) this.splice(op.at, endOf(op.at, op.inserted), op.removed);
    this.undone.push(e);
    this.part();
    return e.sel;
  }
  redo() {
    const e = this.undone.pop();
    if (!e) return null;
    let end = null;
    for (const op of e.ops) end = this.splice(op.at, endOf(op.at, op.removed), op.inserted);
    this.done.push(e);
    this.part();
    return {anchor: end, head: end};
  }

  splice(a, b, text) {
    const l = this.lines, put = text.split('\n'), end = endOf(a, text);
    put[0] = l[a.line].slice(0, a.col) + put[0];
    put[put.length - 1] += l[b.line].slice(b.col);
    if (put.length === 1 && a.line === b.line) l[a.line] = put[0];
    else this.lines = l.slice(0, a.line).concat(put, l.slice(b.line + 1));
    this.joined = null;
    this.onChange(a.line);
    return end;
  }
}

function endOf(a, text) {
  const n = text.split('\n');
  return {line: a.line + n.length - 1, col: n[n.length - 1].length + (n.length === 1 ? a.col : 0)};
}
