// The page: controls give a set-up, the service predicts it, figures show it. The set-up is the address.
'use strict';

const $ = (id) => document.getElementById(id);
const fill = (e, attributes, children) => {
  for (const [k, v] of Object.entries(attributes)) if (v !== null && v !== undefined) e.setAttribute(k, v);
  e.append(...children);
  return e;
};
const make = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const draw = (tag, attributes = {}, ...children) => fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);

// ---- numbers as people read them
const known = (x) => typeof x === 'number' && Number.isFinite(x);
const digits = (x, n = 3) => {
  if (!known(x)) return '–';
  const steps = [[1e12, ' T'], [1e9, ' G'], [1e7, ' M']], step = steps.find(([s]) => Math.abs(x) >= s);
  const scale = step ? (step[0] === 1e7 ? 1e6 : step[0]) : 1;
  return Number((x / scale).toPrecision(n)).toLocaleString('en', { maximumSignificantDigits: n }) + (step ? step[1] : '');
};
const count = (n) => n.toLocaleString('en');
const TIMES = [[86400, 'days', 2], [3600, 'h', 2], [60, 'min', 2], [1, 's', 1], [1e-3, 'ms', 1], [1e-6, 'µs', 0]];
const timeUnit = (s) => TIMES.find(([size, , least]) => s >= least * size) || TIMES.at(-1);
const seconds = (s) => !known(s) ? '–' : s === 0 ? '0 s' : digits(s / timeUnit(s)[0]) + ' ' + timeUnit(s)[1];
// "12.1 to 13.4 ms": one unit for both
const between = (low, high) => {
  if (!known(low) || !known(high)) return '–';
  const [size, unit] = timeUnit(low);
  return `${digits(low / size)} to ${digits(high / size)} ${unit}`;
};
const gib = (b) => known(b) ? digits(b / 2 ** 30) + ' GiB' : '–';
const percent = (f) => known(f) ? digits(100 * f) + ' %' : '–';
const energy = (j) => known(j) ? digits(j / 3.6e6) + ' kWh' : '–';
const plural = (n, what) => `${count(n)} ${what}${n === 1 ? '' : 's'}`;

// ---- the service
let token = '';
class Problem extends Error {
  constructor(p, status) { super(p.detail || 'error ' + status); this.key = p.key || ''; this.status = status; }
  toString() { return (this.key ? this.key + ': ' : '') + this.message; }
}
const said = (e) => (e instanceof Problem ? String(e) : e.message);
const headers = (more) => ({ ...more, ...(token ? { Authorization: 'Bearer ' + token } : {}) });
async function ask(path, body, { signal, media = 'application/json', accept } = {}) {
  const sent = token;
  const more = { ...(body === undefined ? {} : { 'Content-Type': media }), ...(accept ? { Accept: accept } : {}) };
  const answer = await fetch(path, { headers: headers(more), signal, ...(body === undefined ? {} : { method: 'POST', body }) });
  if (answer.status === 401 && (token !== sent || askToken())) return ask(path, body, { signal, media, accept });
  if (answer.ok) return answer;
  throw new Problem(await answer.json().catch(() => ({})), answer.status);
}
const post = async (command, options) => (await ask('v1/' + command, JSON.stringify(options))).json();
const list = async (what) => (await ask('v1/' + what)).json();
let declined = false; // several requests may be refused at once: the question is put once
function askToken() {
  if (declined) return false;
  const given = window.prompt('This service asks for a token:');
  token = given || '';
  declined = !given;
  return !declined;
}

// ---- tables, files, the clipboard
function table(target, header, rows) {
  target.replaceChildren(make('thead', {}, make('tr', {}, ...header.map((h) => make('th', { scope: 'col' }, h)))),
    make('tbody', { role: 'rowgroup' }, ...rows.map((r) => make('tr', { role: 'row' }, ...r.map((c, i) => make(i ? 'td' : 'th',
      i ? { role: 'cell', 'data-label': header[i] } : { scope: 'row', role: 'rowheader' }, c instanceof Node ? c : String(c)))))));
}
const cell = (v) => (/[",\n]|^[=@+-]\D/.test(String(v)) ? '"' + String(v).replaceAll('"', '""') + '"' : String(v));
const csv = (rows) => rows.map((r) => r.map(cell).join(',')).join('\n') + '\n';
function save(name, media, text) {
  const a = make('a', { download: name, href: URL.createObjectURL(new Blob([text], { type: media })) });
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 1000);
}
function button(text, action, label) {
  const b = make('button', { type: 'button', 'aria-label': label }, text);
  b.onclick = () => action(b);
  return b;
}
const copyButton = (text, label) => button('Copy', (b) => copy(b, text), label);
async function copy(b, text, shownBy = b) {
  try { await navigator.clipboard.writeText(text); b.textContent = 'Copied'; } catch { getSelection().selectAllChildren(shownBy); b.textContent = shownBy === b ? text : 'Selected'; }
  setTimeout(() => { b.textContent = 'Copy'; }, 2000);
}
// A text that can be read, saved and copied.
const textBlock = (title, name, text) => [make('pre', { tabindex: '0', role: 'region', 'aria-label': title }, text),
  make('div', { class: 'buttons' }, button('Save', () => save(name, 'text/plain', text), 'Save ' + name), copyButton(text, 'Copy ' + name))];
