// The page: controls give a set-up, the service predicts it, figures show it. The set-up is the address.
'use strict';

const $ = (id) => document.getElementById(id);
const make = (tag, attributes = {}, ...children) => {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attributes)) if (v !== null && v !== undefined) e.setAttribute(k, v);
  e.append(...children);
  return e;
};
const draw = (tag, attributes = {}, ...children) => {
  const e = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  e.append(...children);
  return e;
};

// ---- numbers as people read them
const known = (x) => typeof x === 'number' && Number.isFinite(x);
const digits = (x, n = 3) => !known(x) ? '–' : x === 0 ? '0'
  : Math.abs(x) >= 1e7 ? x.toExponential(2) : Number(x.toPrecision(n)).toLocaleString('en');
const seconds = (s) => !known(s) ? '–' : s < 1e-3 ? digits(s * 1e6) + ' µs' : s < 1 ? digits(s * 1e3) + ' ms'
  : s < 120 ? digits(s) + ' s' : s < 7200 ? digits(s / 60) + ' min' : s < 2 * 86400 ? digits(s / 3600) + ' h'
  : digits(s / 86400) + ' days';
const gib = (b) => known(b) ? digits(b / 2 ** 30) + ' GiB' : '–';
const percent = (f) => known(f) ? digits(100 * f, 3) + ' %' : '–';
const energy = (j) => known(j) ? digits(j / 3.6e6) + ' kWh' : '–';

// ---- the service
let token = '';
class Problem extends Error {
  constructor(p, status) { super(p.detail || 'error ' + status); this.key = p.key || ''; this.status = status; }
}
async function ask(path, body, signal, media = 'application/json') {
  const headers = token ? { Authorization: 'Bearer ' + token } : {};
  const request = body === undefined ? { headers, signal }
    : { method: 'POST', headers: { ...headers, 'Content-Type': media }, body, signal };
  const answer = await fetch(path, request);
  if (answer.status === 401 && askToken()) return ask(path, body, signal, media);
  if (answer.ok) return answer;
  throw new Problem(await answer.json().catch(() => ({})), answer.status);
}
const post = async (command, options, signal) => (await ask('v1/' + command, JSON.stringify(options), signal)).json();
function askToken() {
  const given = window.prompt('This service asks for a token:');
  token = given || '';
  return Boolean(given);
}

// ---- the set-up
const LINK = [0, 1, 1.25, 2.5, 3, 5, 6.25, 8, 10, 12.5, 16, 25, 32, 50, 64, 100, 200, 400, 800]; // GB/s; 0: as it is
const BATCH = (i) => (i < 0 ? null : 2 ** i);
const JITTER = (i) => (i < 0 ? null : i / 100);
const initial = { workload: 'resnet50', system: 'iris-v100', framework: 'pytorch-ddp', nodes: 3, batch: -1, precision: '', inter: 0, intra: 0,
  jitter: -1, epochs: '', tokens: '', price: '', global: '' };
let state = { ...initial };
let own = {}; // documents of the user: {workload: {name, document}, measured: {name, text}}
let kept = null; // {state, rows, row}; without rows: still to be predicted
let shows = 'explore', asked = false, planned = false; // the view; whether its questions were answered, the plans searched
const questions = ['a-workload', 'a-length', 'a-system', 'a-most', 'a-deadline'];

const fields = Object.keys(initial);
// Everything that is shown has its link: the set-up, what was kept beside it ("kept.nodes=2"), the view, its questions, the search.
function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  const read = (prefix) => Object.fromEntries(fields.map((f) => [f, !given.has(prefix + f) ? initial[f] : typeof initial[f] === 'number' ? Number(given.get(prefix + f)) : given.get(prefix + f)]));
  state = read('');
  kept = given.has('kept') ? { state: read('kept.') } : null;
  shows = ['wizard', 'health'].includes(given.get('view')) ? given.get('view') : 'explore';
  asked = given.has('asked');
  planned = given.has('plans');
  for (const q of questions) if (given.has(q)) $(q).value = given.get(q);
  token = given.get('token') || token; // of a portal that starts the service for its user; writeAddress() does not repeat it
}
function writeAddress() {
  const p = new URLSearchParams();
  const write = (prefix, s) => { for (const f of fields) if (s[f] !== initial[f]) p.set(prefix + f, s[f]); };
  write('', state);
  if (kept) { p.set('kept', ''); write('kept.', kept.state); }
  if (shows !== 'explore') p.set('view', shows);
  if (shows === 'wizard') for (const q of questions) if ($(q).value !== $(q).defaultValue) p.set(q, $(q).value);
  if (shows === 'wizard' && asked) p.set('asked', '');
  if (planned) p.set('plans', '');
  history.replaceState(null, '', '#' + p);
}
function showControls() {
  for (const f of fields) if ($(f) && $(f).value !== String(state[f])) $(f).value = state[f];
  $('nodes-shown').textContent = 2 ** state.nodes;
  $('batch-shown').textContent = BATCH(state.batch) ?? 'default';
  for (const f of ['inter', 'intra']) $(f + '-shown').textContent = LINK[state[f]] ? LINK[state[f]] + ' GB/s' : 'as it is';
  $('jitter-shown').textContent = JITTER(state.jitter) === null ? 'as measured' : percent(JITTER(state.jitter));
  // a screen reader says what the position means
  for (const f of ['nodes', 'batch', 'inter', 'intra', 'jitter']) $(f).setAttribute('aria-valuetext', $(f + '-shown').textContent);
}
function settings(s) {
  const set = {};
  for (const f of ['inter', 'intra']) if (LINK[s[f]]) set[`links.${f}.bandwidth`] = LINK[s[f]] + 'GB/s';
  if (JITTER(s.jitter) !== null) set['system.jitter_frac'] = JITTER(s.jitter);
  return set;
}
const billions = (text) => text.replace(/\s*b$/i, 'G'); // "20B"
function options(s, extra = {}) {
  const o = { system: s.system, workload: s.workload, framework: s.framework, nodes: 2 ** s.nodes, ...extra };
  if (own.workload && s.workload === own.workload.name) o.workload = own.workload.document;
  if (own.measured) o.measured = own.measured;
  if (BATCH(s.batch)) o.batch_per_device = BATCH(s.batch);
  for (const f of ['precision', 'price']) if (s[f]) o[f] = s[f];
  if (s.tokens) o.tokens = billions(s.tokens);
  if (s.epochs) o.epochs = Number(s.epochs);
  if (Object.keys(settings(s)).length) o.set = settings(s);
  return o;
}
const quote = (t) => (/^[\w@%+=:,./-]+$/.test(t) ? t : "'" + String(t).replaceAll("'", "'\\''") + "'");
function commandLine(s) {
  const words = ['dlmodel', 'predict'];
  const o = options(s);
  for (const [k, v] of Object.entries(o)) {
    if (k === 'set') for (const [key, value] of Object.entries(v)) words.push('--set', quote(key + '=' + value));
    else if (typeof v === 'object') words.push('--' + k.replaceAll('_', '-'), quote(k === 'workload' ? own.workload.name + '.json' : v.name));
    else words.push('--' + k.replaceAll('_', '-'), quote(v));
  }
  return words.join(' ');
}

// ---- figures
let W = 560; // as wide as the figure is, so that its letters have the size of the page's
const H = 300;
const room = (id) => { W = Math.min(720, Math.max(300, ($(id).clientWidth || 584) - 24)); };
function figure(id, caption, question, svg, header, rows) {
  const f = $(id);
  svg.setAttribute('role', 'img');
  svg.setAttribute('aria-label', question);
  const body = rows.map((r) => make('tr', {}, ...r.map((c, i) => make(i ? 'td' : 'th', i ? {} : { scope: 'row' }, String(c)))));
  const table = make('table', {}, make('thead', {}, make('tr', {}, ...header.map((h) => make('th', { scope: 'col' }, h)))), make('tbody', {}, ...body));
  const details = make('details', {}, make('summary', {}, 'As a table'), make('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption + ' as a table' }, table));
  const open = f.querySelector('details')?.open;
  if (open) details.open = true;
  const svgButton = make('button', { type: 'button' }, 'SVG'), csvButton = make('button', { type: 'button' }, 'CSV');
  svgButton.setAttribute('aria-label', caption + ' as SVG');
  csvButton.setAttribute('aria-label', caption + ' as CSV');
  svgButton.onclick = () => save(id.slice(2) + '.svg', 'image/svg+xml', standalone(svg));
  csvButton.onclick = () => save(id.slice(2) + '.csv', 'text/csv', [header, ...rows].map((r) => r.map(cell).join(',')).join('\n') + '\n');
  f.replaceChildren(make('figcaption', {}, caption), svg, make('div', { class: 'tools' }, svgButton, csvButton), details);
}
const cell = (v) => (/[",\n]|^[=@+-]\D/.test(String(v)) ? '"' + String(v).replaceAll('"', '""') + '"' : String(v));
function save(name, media, text) {
  const a = make('a', { download: name, href: URL.createObjectURL(new Blob([text], { type: media })) });
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 1000);
}
// Styles of the page become attributes, so that the file looks alike anywhere.
function standalone(svg) {
  const copy = svg.cloneNode(true), from = svg.querySelectorAll('*'), to = copy.querySelectorAll('*');
  from.forEach((e, i) => {
    const style = getComputedStyle(e);
    for (const p of ['fill', 'fill-opacity', 'stroke', 'stroke-width', 'stroke-dasharray', 'stroke-opacity', 'font-size', 'font-family'])
      if (style.getPropertyValue(p)) to[i].setAttribute(p, style.getPropertyValue(p));
    to[i].removeAttribute('class');
  });
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  const paper = draw('rect', { width: W, height: copy.viewBox.baseVal.height, fill: getComputedStyle(document.documentElement).backgroundColor });
  copy.prepend(paper);
  return new XMLSerializer().serializeToString(copy);
}
function words(x, y, t, more = {}) { return draw('text', { x, y, ...more }, t); }
function ticks(most) {
  const step = 10 ** Math.floor(Math.log10(most / 2)), s = most / step > 8 ? 2 * step : step;
  const list = [];
  for (let v = 0; v <= most * 1.0001; v += s) list.push(v);
  return list;
}

// Throughput of one device over the nodes: a flat line scales, a falling one does not.
function drawScaling(rows, before) {
  room('f-scaling');
  const svg = draw('svg', { viewBox: `0 0 ${W} ${H}` }), left = 64, right = 120, top = 12, bottom = 44;
  const each = (r) => r.throughput_samples_per_s / r.devices;
  const low = (r) => r.global_batch_samples / r.iteration_high_s / r.devices, high = (r) => r.global_batch_samples / r.iteration_low_s / r.devices;
  const most = Math.max(...rows.map(high), ...(before || []).map(each));
  const first = Math.log2(rows[0].nodes), span = Math.max(1, Math.log2(rows[rows.length - 1].nodes) - first);
  const x = (r) => left + ((Math.log2(r.nodes) - first) / span) * (W - left - right), y = (v) => H - bottom - (v / most) * (H - top - bottom);
  for (const t of ticks(most)) svg.append(draw('line', { class: 'grid', x1: left, x2: W - right, y1: y(t), y2: y(t) }), words(left - 6, y(t) + 4, digits(t), { 'text-anchor': 'end', class: 'soft' }));
  for (const r of rows) svg.append(words(x(r), H - bottom + 18, r.nodes, { 'text-anchor': 'middle', class: 'soft' }));
  svg.append(words((left + W - right) / 2, H - 6, 'nodes', { 'text-anchor': 'middle', class: 'soft' }));
  svg.append(draw('polygon', { class: 'band', points: [...rows.map((r) => `${x(r)},${y(high(r))}`), ...[...rows].reverse().map((r) => `${x(r)},${y(low(r))}`)].join(' ') }));
  const line = (list, css) => svg.append(draw('polyline', { class: 'line ' + css, points: list.map((r) => `${x(r)},${y(each(r))}`).join(' ') }));
  if (before && before.length > 1) {
    const end = before[before.length - 1];
    line(before, 'l2');
    svg.append(words(x(end) + 6, y(each(end)) + 18, 'kept', {}));
  }
  line(rows, 'l1');
  const end = rows[rows.length - 1];
  svg.append(words(x(end) + 6, y(each(end)) + 4, state.framework, {}));
  for (const r of rows) {
    const dot = draw('circle', { class: 's1', cx: x(r), cy: y(each(r)), r: r.nodes === 2 ** state.nodes ? 6 : 3.5 });
    dot.append(draw('title', {}, `${r.nodes} nodes: ${digits(each(r))} samples/s and device (${digits(low(r))} to ${digits(high(r))}), efficiency ${percent(r.scaling_efficiency)}`));
    svg.append(dot);
  }
  figure('f-scaling', 'Samples per second of one device; the band holds 80 %', `Does it scale? ${digits(each(rows[0]))} samples/s and device on ${rows[0].nodes} node, ${digits(each(end))} on ${end.nodes}.`,
    svg, ['nodes', 'devices', 'samples/s', 'low', 'high', 'efficiency %'],
    rows.map((r) => [r.nodes, r.devices, digits(r.throughput_samples_per_s, 4), digits(low(r) * r.devices, 4), digits(high(r) * r.devices, 4), digits(100 * r.scaling_efficiency)]));
}

const PARTS = [['forward_s', 'forward', 's1'], ['backward_s', 'backward', 's3'], ['update_s', 'update', 's4'], ['exposed_comm_s', 'communication', 's2'],
  ['exposed_input_s', 'input', 's5'], ['bubble_s', 'pipeline bubble', 's7'], ['overhead_s', 'host and stragglers', 's6']];
// Bars of parts, one above another, each named where it has the room.
function drawBars(id, caption, question, bars, unit) {
  room(id);
  const rowH = 56, h = 12 + rowH * bars.length, svg = draw('svg', {});
  const named = bars[0].parts.filter((p) => bars.some((b) => b.parts.find((q) => q.name === p.name).value > 0));
  const most = Math.max(...bars.map((b) => Math.max(b.limit || 0, b.parts.reduce((s, p) => s + p.value, 0)))) || 1;
  const x = (v) => 8 + (v / most) * (W - 16);
  const rows = [];
  bars.forEach((b, i) => {
    const y = 26 + rowH * i;
    let at = 0;
    svg.append(words(8, y - 6, b.name));
    for (const p of b.parts.filter((q) => q.value > 0)) {
      const from = x(at), width = x(at + p.value) - from;
      const bar = draw('rect', { class: p.css, x: from, y, width: Math.max(width - 1, .5), height: 26 });
      bar.append(draw('title', {}, `${p.name}: ${unit(p.value)}`));
      svg.append(bar);
      rows.push([b.name, p.name, unit(p.value)]);
      at += p.value;
    }
    if (b.limit) svg.append(draw('line', { class: 'limit', x1: x(b.limit), x2: x(b.limit), y1: y - 6, y2: y + 32 }), words(x(b.limit) - 4, y - 6, 'limit ' + unit(b.limit), { 'text-anchor': 'end' }));
  });
  // the legend is part of the picture, so that a saved one has it too
  const label = (p) => p.name + ' ' + bars.map((b) => unit(b.parts.find((q) => q.name === p.name).value)).join(' / ');
  let lx = 8, ly = h + 8;
  for (const p of named) {
    const width = 26 + 7.2 * label(p).length;
    if (lx > 8 && lx + width > W) { lx = 8; ly += 22; }
    svg.append(draw('rect', { class: p.css, x: lx, y: ly - 11, width: 12, height: 12 }), words(lx + 17, ly, label(p)));
    lx += width;
  }
  svg.setAttribute('viewBox', `0 0 ${W} ${ly + 10}`);
  figure(id, caption, question, svg, ['set-up', 'part', 'value'], rows);
}
const timeBar = (name, r) => ({ name: `${name}: ${seconds(r.iteration_s)} an iteration`, parts: PARTS.map(([k, n, css]) => ({ name: n, value: r[k] || 0, css })) });
const MEMORY = [['weights_bytes', 'weights', 's1'], ['gradients_bytes', 'gradients', 's2'], ['optimizer_bytes', 'optimizer', 's4'], ['activations_bytes', 'activations', 's3'],
  ['workspace_bytes', 'workspace', 's5'], ['buffers_bytes', 'buffers', 's7'], ['context_bytes', 'context', 's6']];
const memoryBar = (name, r) => ({ name: `${name}: ${gib(r.memory.total_bytes)}${r.fits ? '' : ', does not fit'}`, limit: r.memory.capacity_bytes,
  parts: MEMORY.map(([k, n, css]) => ({ name: n, value: r.memory[k] || 0, css })) });

function drawFrameworks(list) {
  room('f-frameworks');
  const rows = list.filter((r) => r.fits && r.framework !== 'ideal').sort((a, b) => b.throughput_samples_per_s - a.throughput_samples_per_s).slice(0, 10);
  const h = 22 * rows.length + 26, left = Math.min(W / 2, 14 + 7.7 * Math.max(...rows.map((r) => r.framework.length), 8)), svg = draw('svg', { viewBox: `0 0 ${W} ${h}` });
  const high = (r) => r.global_batch_samples / r.iteration_low_s, low = (r) => r.global_batch_samples / r.iteration_high_s;
  const most = Math.max(...rows.map(high), 1), x = (v) => left + (v / most) * (W - left - 76);
  rows.forEach((r, i) => {
    const y = 6 + 22 * i;
    svg.append(words(left - 6, y + 13, r.framework, { 'text-anchor': 'end' }),
      draw('rect', { class: r.framework === state.framework ? 's1' : 's6', x: left, y: y + 2, width: Math.max(1, x(r.throughput_samples_per_s) - left), height: 14 }),
      draw('line', { class: 'whisker', x1: x(low(r)), x2: x(high(r)), y1: y + 9, y2: y + 9 }),
      words(x(high(r)) + 5, y + 13, digits(r.throughput_samples_per_s)));
  });
  svg.append(words(6, h - 6, 'samples/s; where the lines (80 %) overlap: a tie', { class: 'soft' }));
  figure('f-frameworks', 'Other frameworks on these nodes', rows.length ? `The fastest is ${rows[0].framework} with ${digits(rows[0].throughput_samples_per_s)} samples/s.` : 'No framework fits.', svg,
    ['framework', 'samples/s', 'low', 'high'], rows.map((r) => [r.framework, digits(r.throughput_samples_per_s, 4), digits(low(r), 4), digits(high(r), 4)]));
}

const epochEnergy = (r) => (known(r.iteration_energy_j) && known(r.epoch_s) ? r.iteration_energy_j * r.epoch_s / r.iteration_s : null);
const NUMBERS = [['iteration', (r) => `${seconds(r.iteration_s)} (${seconds(r.iteration_low_s)} to ${seconds(r.iteration_high_s)})`], ['samples/s', (r) => digits(r.throughput_samples_per_s, 4)],
  ['tokens/s', (r) => digits(r.tokens_per_s, 4)], ['efficiency', (r) => percent(r.scaling_efficiency)], ['bottleneck', (r) => `${r.bottleneck}, ${percent(r.bottleneck_share)}`],
  ['memory of a device', (r) => gib(r.memory.total_bytes)], ['MFU', (r) => percent(r.mfu_frac)], ['an epoch', (r) => seconds(r.epoch_s)], ['energy of an epoch', (r) => energy(epochEnergy(r))],
  ['the whole training', (r) => seconds(r.run_s)], ['GPU-hours', (r) => digits(r.gpu_hours)],
  ['cost', (r) => (known(r.cost) ? digits(r.cost, 4) + ' ' + (r.currency || '') : known(r.run_s) ? 'give the price of a node and hour' : 'enter epochs or tokens, and the price')],
  ['energy', (r) => (known(r.energy_j) ? energy(r.energy_j) : 'enter epochs or tokens')], ['power', (r) => (known(r.power_w) ? digits(r.power_w / 1e3) + ' kW' : '–')]];
function table(target, header, rows, caption) {
  target.replaceChildren(...(caption ? [make('caption', {}, caption)] : []), make('thead', {}, make('tr', {}, ...header.map((h) => make('th', { scope: 'col' }, h)))),
    make('tbody', { role: 'rowgroup' }, ...rows.map((r) => make('tr', { role: 'row' }, ...r.map((c, i) => make(i ? 'td' : 'th', i ? { role: 'cell', 'data-label': header[i] } : { scope: 'row', role: 'rowheader' },
      c instanceof Node ? c : String(c)))))));
}
function copyButton(text, label) {
  const b = make('button', { type: 'button', 'aria-label': label }, 'Copy');
  b.onclick = () => copy(b, text);
  return b;
}
async function copy(button, text, shownBy = button) {
  try { await navigator.clipboard.writeText(text); button.textContent = 'Copied'; } catch { getSelection().selectAllChildren(shownBy); button.textContent = shownBy === button ? text : 'Selected'; }
  setTimeout(() => { button.textContent = 'Copy'; }, 2000);
}

// ---- predicting
let busy = false, again = false, frameworksOf = '', later = 0;
const PAUSE_MS = 200;
function problem(e) {
  $('problem').hidden = false;
  $('brief').textContent = '';
  $('problem').textContent = (e.key ? e.key + ': ' : '') + e.message;
}
const series = (n) => Array.from({ length: Math.max(n + 2, 3) }, (_, i) => 2 ** i);
// One request at a time, always for where the sliders are now: what they passed in between is left out.
async function predict() {
  showControls();
  writeAddress();
  $('command').textContent = commandLine(state);
  clearTimeout(later);
  if (busy) { again = true; return; }
  busy = true;
  do {
    again = false;
    await answer({ ...state });
  } while (again);
  busy = false;
  later = setTimeout(compareFrameworks, PAUSE_MS);
}
const at = (rows, s) => rows.find((r) => r.nodes === 2 ** s.nodes) || rows[rows.length - 1];
const scaling = async (s) => (await post('predict', options(s, { nodes: series(s.nodes) }))).results;
async function answer(s) {
  try {
    if (kept && !kept.rows) {
      const rows = await scaling(kept.state);
      kept = { ...kept, rows, row: at(rows, kept.state) };
      $('forget').hidden = false;
    }
    const rows = await scaling(s);
    $('problem').hidden = true;
    show(s, rows, at(rows, s));
  } catch (e) { problem(e); }
}
// All frameworks are many predictions: once the sliders rest.
async function compareFrameworks() {
  const s = { ...state }, key = JSON.stringify(options(s, { framework: '' }));
  if (key === frameworksOf || !shown) return;
  try {
    const others = await post('predict', options(s, { framework: 'all' }));
    frameworksOf = key;
    drawFrameworks(others.results);
  } catch (e) { problem(e); }
}
function show(s, rows, row) {
  if (!shown) performance.mark('answered'); // tests/serve/timing.py reads it
  shown = { state: s, rows, row };
  $('sentence').textContent = `${s.framework} trains ${s.workload} on ${row.devices} devices at ${digits(row.throughput_samples_per_s, 4)} samples/s; 80 % prediction interval: ${seconds(row.iteration_low_s)} to ${seconds(row.iteration_high_s)} per iteration. ` +
    `The bottleneck is ${row.bottleneck}, ${percent(row.bottleneck_share)} of the time.${row.fits ? '' : ' It does not fit in memory.'}` +
    (kept && JSON.stringify(kept.state) !== JSON.stringify(s) ? ` ${percent(Math.abs(1 - row.throughput_samples_per_s / kept.row.throughput_samples_per_s))} ${row.throughput_samples_per_s < kept.row.throughput_samples_per_s ? 'slower' : 'faster'} than the pinned configuration.` : '');
  $('brief').textContent = `${digits(row.throughput_samples_per_s, 4)} samples/s · ${seconds(row.iteration_s)} (${seconds(row.iteration_low_s)} to ${seconds(row.iteration_high_s)})${row.fits ? '' : ' · does not fit'}`;
  $('warnings').replaceChildren(...row.warnings.map((w) => make('li', {}, w)));
  drawScaling(rows, kept?.rows);
  const both = (bar) => [bar(kept ? 'now' : 'this set-up', row), ...(kept ? [bar('kept', kept.row)] : [])];
  drawBars('f-time', 'Where the time of an iteration goes', `Of ${seconds(row.iteration_s)}: ${PARTS.filter(([k]) => row[k] > 0).map(([k, n]) => n + ' ' + seconds(row[k])).join(', ')}.`, both(timeBar), seconds);
  drawBars('f-memory', 'Memory of a device', `${gib(row.memory.total_bytes)} of ${gib(row.memory.capacity_bytes)}.`, both(memoryBar), gib);
  table($('numbers'), ['', kept ? 'now' : 'this set-up', ...(kept ? ['kept'] : [])], [['set-up', describe(s), ...(kept ? [describe(kept.state)] : [])],
    ...NUMBERS.map(([n, f]) => [n, f(row), ...(kept ? [f(kept.row)] : [])]).filter((r) => r.slice(1).some((v) => v !== '–'))]);
}
const describe = (s) => `${s.workload}, ${s.system}, ${s.framework}, ${2 ** s.nodes} nodes`;
let shown = null, waiting = 0;
function change(field, value) {
  state[field] = typeof initial[field] === 'number' ? Number(value) : value;
  showControls();
  if (planned && !searching) { // the plans were for another set-up
    planned = false;
    $('search-state').textContent = '';
    $('plans').replaceChildren();
    $('others').replaceChildren();
  }
  if (!waiting) waiting = requestAnimationFrame(() => { waiting = 0; predict(); });
}

// ---- searching, with progress, until it is done or cancelled
let searching = null;
async function search() {
  searching = new AbortController();
  planned = true;
  writeAddress();
  $('search').hidden = true;
  $('cancel').hidden = false;
  $('search-state').textContent = 'Searching…';
  const o = options(state), each = shown?.row;
  delete o.epochs;
  delete o.batch_per_device;
  o.global_batch = Number(state.global) || each?.global_batch_samples;
  try {
    const answer = await fetch('v1/search', { method: 'POST', signal: searching.signal, body: JSON.stringify(o),
      headers: { 'Content-Type': 'application/json', Accept: 'text/event-stream', ...(token ? { Authorization: 'Bearer ' + token } : {}) } });
    if (!answer.ok) throw new Problem(await answer.json().catch(() => ({})), answer.status);
    for await (const event of events(answer.body)) {
      if (event.name === 'progress') { const p = JSON.parse(event.data); $('search-state').textContent = `Searching: ${percent(p.done_frac)} after ${seconds(p.elapsed_s)}`; }
      if (event.name === 'problem') throw new Problem(JSON.parse(event.data), 422);
      if (event.name === 'answer') showPlans(JSON.parse(event.data));
    }
  } catch (e) {
    $('search-state').textContent = e.name === 'AbortError' ? 'Cancelled.' : (e.key ? e.key + ': ' : '') + e.message;
  }
  searching = null;
  $('search').hidden = false;
  $('cancel').hidden = true;
}
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    for (let end; (end = text.indexOf('\n\n')) >= 0; text = text.slice(end + 2)) {
      const lines = text.slice(0, end).split('\n');
      const name = lines.find((l) => l.startsWith('event: '))?.slice(7);
      if (name) yield { name, data: lines.filter((l) => l.startsWith('data: ')).map((l) => l.slice(6)).join('\n') };
    }
  }
}
function showPlans(a) {
  const tied = a.results.filter((r) => r.tied_with_best).length;
  $('search-state').textContent = `${a.evaluated_count.toLocaleString('en')} plans in ${seconds(a.elapsed_s)}.` + (tied > 1 ? ` The first ${tied} cannot be distinguished: a tie.` : '');
  table($('plans'), ['plan', 'iteration', '80 %', 'samples/s', 'memory', 'MFU', 'command'], a.results.map((r, i) => [
    [r.strategy, ...['dp', 'tp', 'pp', 'sp', 'ep'].filter((k) => r[k] > 1).map((k) => k + ' ' + r[k]), r.recompute && r.recompute !== 'none' ? 'recompute ' + r.recompute : '', r.zero ? 'ZeRO ' + r.zero : ''].filter(Boolean).join(', '),
    seconds(r.iteration_s), seconds(r.iteration_low_s) + ' to ' + seconds(r.iteration_high_s), digits(r.throughput_samples_per_s, 4), gib(r.memory.total_bytes), percent(r.mfu_frac), copyButton(r.command, `Copy the command of plan ${i + 1}`)]));
  const why = Object.entries(a.rejected || {}), limits = (a.limits || []).filter((l) => known(l.cost_s)).sort((p, q) => q.cost_s - p.cost_s);
  $('others').replaceChildren(...(why.length ? [make('h3', {}, 'Why other plans were rejected'), make('ul', {}, ...why.map(([k, n]) => make('li', {}, `${n.toLocaleString('en')} plans: ${k}`)))] : []),
    ...(limits.length ? [make('h3', {}, 'What limits the best'), make('ul', {}, ...limits.map((l) => make('li', {}, `${l.name}: ${seconds(l.cost_s)}`)))] : []));
}

// ---- the user's own files
async function take(file) {
  const text = file.name.endsWith('.csv') ? await file.text() : null;
  $('own').textContent = 'Reading ' + file.name + '…';
  try {
    if (text !== null) {
      own.measured = { name: file.name, text };
      $('own').textContent = `${file.name}: these runs now correct the predictions for the same machine and framework.`;
    } else {
      const kind = file.name.endsWith('.onnx') ? 'onnx' : 'config', name = file.name.replace(/\.\w+$/, '').replace(/[^\w-]+/g, '-');
      const document = await (await ask(`v1/import/${kind}?name=${encodeURIComponent(name)}`, file, undefined, 'application/octet-stream')).json();
      own.workload = { name, document };
      state.workload = name;
      $('own').textContent = `${file.name} is the network now, as ${name}.`;
    }
    frameworksOf = '';
    await predict();
  } catch (e) {
    $('own').textContent = `${file.name}: ${e.message}`;
  }
}

// ---- three questions
// A date becomes the time until then; days and weeks become hours.
function untilWhen(text) {
  const long = text.match(/^([\d.]+)\s*([dw])(ays?|eeks?)?$/i);
  if (long) return Number(long[1]) * (long[2].toLowerCase() === 'w' ? 168 : 24) + 'h';
  if (!/^\d{4}-\d/.test(text)) return text;
  const left_h = (new Date(/[ T]\d/.test(text) ? text.replace(' ', 'T') : text + 'T00:00') - Date.now()) / 3.6e6;
  if (!(left_h > 0)) throw new Error(`until when: expected a date to come, got ${text}`);
  return left_h.toFixed(2) + 'h';
}
async function recommend(event) {
  event?.preventDefault();
  const length = $('a-length').value.trim(), out = $('advice'), tokens = /[a-z]$/i.test(length);
  asked = true;
  writeAddress();
  const base = { system: $('a-system').value, workload: $('a-workload').value, ...(tokens ? { tokens: billions(length) } : { epochs: Number(length) }) };
  const most = Number($('a-most').value) || 1, nodes = [];
  for (let n = 1; n <= most; n *= 2) nodes.push(n);
  if (nodes[nodes.length - 1] !== most) nodes.push(most);
  out.replaceChildren(make('p', {}, 'Computing…'));
  try {
    const all = await post('predict', { ...base, framework: 'all', nodes, deadline: untilWhen($('a-deadline').value.trim()) });
    const advice = all.advice, pick = advice?.deadline?.nodes ? advice.deadline : advice?.fastest;
    if (!pick) throw new Error('no plan fits in the memory of these devices');
    const row = all.results.find((r) => r.framework === advice.framework && r.nodes === pick.nodes);
    const total = row.total_s ?? row.train_s ?? (base.epochs && known(row.epoch_s) ? row.epoch_s * base.epochs : null);
    const meets = Boolean(advice.deadline?.nodes);
    out.replaceChildren(make('h2', {}, meets ? `Take ${nodesText(pick.nodes)} with ${advice.framework}` : 'The deadline cannot be met'),
      make('p', {}, meets ? `It is ${pick.why}.` : `${advice.deadline?.why || ''} The best that there is: ${nodesText(pick.nodes)} with ${advice.framework}, ${pick.why}.`),
      make('p', {}, known(total) && !meets ? `In all ${seconds(total)}. ` : '', `With 80 % probability an iteration takes ${seconds(row.iteration_low_s)} to ${seconds(row.iteration_high_s)}. Bottleneck: ${row.bottleneck}.`));
    const reasons = ['knee', 'fastest', 'cheapest', 'below_80'].filter((k) => advice[k]).map((k) => make('li', {}, (advice[k].nodes ? nodesText(advice[k].nodes) + ': ' : '') + advice[k].why));
    out.append(make('h3', {}, 'The alternatives'), make('ul', {}, ...reasons));
    await addScript(out, base, advice.framework, pick.nodes, row);
    const go = make('button', { type: 'button' }, 'Explore this set-up');
    go.onclick = () => { Object.assign(state, { workload: base.workload, system: base.system, framework: advice.framework, nodes: Math.round(Math.log2(pick.nodes)), epochs: base.epochs || '', tokens: base.tokens || '' }); view('explore'); predict(); };
    out.append(make('div', { class: 'buttons' }, go));
  } catch (e) {
    out.replaceChildren(make('p', { class: 'problem', role: 'alert' }, (e.key ? e.key + ': ' : '') + e.message));
  }
}
const nodesText = (n) => (n === 1 ? '1 node' : n + ' nodes');
async function addScript(out, base, framework, nodes, row) {
  const run = { framework, workload: base.workload, nodes, precision: row.precision, batch_per_device: row.batch_per_device_samples };
  const attempts = [
    ['The training as a job for Slurm', '', () => ask('v1/predict', JSON.stringify({ ...base, framework, nodes, export: 'sbatch' }))],
    ['A job for Slurm that measures this', 'It runs in a folder with the network. This command makes the folder and submits the job:',
      () => ask('v1/script', JSON.stringify(run)), `dlmodel slurm submit --framework ${quote(framework)} --workload ${quote(base.workload)} --nodes ${nodes} --batch-per-device ${run.batch_per_device} --precision ${run.precision}`]];
  for (const [title, note, attempt, line] of attempts) {
    try {
      const text = await (await attempt()).text(), button = make('button', { type: 'button' }, 'Save the job');
      button.onclick = () => save('job.sh', 'text/x-shellscript', text);
      out.append(make('h3', {}, title), ...(note ? [make('p', {}, note), make('div', { class: 'command' }, make('code', {}, line), copyButton(line, 'Copy the command'))] : []), make('pre', { tabindex: '0', role: 'region', 'aria-label': title }, text), make('div', { class: 'buttons' }, button));
      return;
    } catch { /* the next one */ }
  }
}

// ---- measured runs
async function health() {
  try {
    const a = await (await ask('v1/measured')).json(), rows = (a.rows || []).filter((r) => !r.skipped);
    const off = rows.filter((r) => known(r.predicted_low) && (r.measured < r.predicted_low || r.measured > r.predicted_high));
    $('health-sentence').textContent = `${rows.length} runs; ${off.length} lie outside their interval.`;
    drawHealth(rows);
    table($('health-rows'), ['run', 'framework', 'network', 'devices', 'measured', 'predicted', 'time error %', 'likely cause'], [...off, ...rows.filter((r) => !off.includes(r))].map((r) => [r.id, r.framework, r.workload, r.devices,
      digits(r.measured, 4) + ' ' + r.unit, digits(r.predicted, 4), digits(r.time_error_pct), r.cause || (off.includes(r) ? 'unknown' : '')]));
  } catch (e) { $('health-sentence').textContent = e.message; }
}
function drawHealth(rows) {
  room('f-health');
  const svg = draw('svg', { viewBox: `0 0 ${W} ${H}` }), left = 70, bottom = 44;
  const all = rows.flatMap((r) => [r.measured, r.predicted]).filter((v) => v > 0), low = Math.log10(Math.min(...all)), high = Math.log10(Math.max(...all)) + .05;
  const x = (v) => left + ((Math.log10(v) - low) / (high - low || 1)) * (W - left - 16), y = (v) => H - bottom - ((Math.log10(v) - low) / (high - low || 1)) * (H - bottom - 12);
  if (!all.length) return;
  svg.append(draw('line', { class: 'axis', x1: x(10 ** low), y1: y(10 ** low), x2: x(10 ** high), y2: y(10 ** high) }));
  for (let e = Math.floor(low); e <= high; e++) for (const v of (high - low > 2 ? [1] : [1, 2, 5]).map((m) => m * 10 ** e)) {
    if (v < 10 ** low || v > 10 ** high) continue;
    svg.append(words(x(v), H - bottom + 18, digits(v), { 'text-anchor': 'middle', class: 'soft' }), words(left - 6, y(v) + 4, digits(v), { 'text-anchor': 'end', class: 'soft' }));
  }
  svg.append(words(W / 2, H - 6, 'measured', { 'text-anchor': 'middle', class: 'soft' }), words(left + 4, 22, 'predicted', { class: 'soft' }));
  for (const r of rows) {
    const bad = known(r.predicted_low) && (r.measured < r.predicted_low || r.measured > r.predicted_high);
    const dot = bad ? draw('rect', { class: 's7', x: x(r.measured) - 5, y: y(r.predicted) - 5, width: 10, height: 10 }) : draw('circle', { class: 's1', cx: x(r.measured), cy: y(r.predicted), r: 4 });
    dot.append(draw('title', {}, `${r.id}: measured ${digits(r.measured)}, predicted ${digits(r.predicted)} ${r.unit}`));
    svg.append(dot);
  }
  figure('f-health', 'Predicted over measured; squares lie outside their interval', `${rows.length} runs, on the line where the prediction is right.`, svg, ['run', 'measured', 'predicted'], rows.map((r) => [r.id, digits(r.measured, 4), digits(r.predicted, 4)]));
}

// ---- start
function view(name) {
  for (const v of document.querySelectorAll('.view')) v.hidden = v.id !== name;
  for (const b of document.querySelectorAll('nav button')) b.setAttribute('aria-pressed', String(b.dataset.view === name));
  shows = name;
  writeAddress();
  if (name === 'health') health();
}
// A link inside the page is no set-up.
const isSetup = () => !location.hash || location.hash.includes('=');
async function restore() {
  readAddress();
  view(shows);
  if (shows === 'wizard' && asked) recommend();
  await predict();
  if (planned && shows === 'explore') search();
}
async function names(what) { return (await ask('v1/' + what)).json(); }
async function fillLists() {
  try {
    const [systems, workloads, frameworks] = await Promise.all(['systems', 'workloads', 'frameworks'].map(names));
    $('systems').replaceChildren(...systems.map((s) => make('option', { value: s.name }, s.summary || '')));
    $('workloads').replaceChildren(...workloads.map((s) => make('option', { value: s.name }, s.summary || '')));
    const group = (label, list) => make('optgroup', { label }, ...list.map((f) => make('option', { value: f.name, title: f.summary || '' }, f.name)));
    const use = frameworks.filter((f) => !f.status || f.status === 'maintained');
    $('framework').replaceChildren(group('maintained', use), group('retired, lossy or asynchronous', frameworks.filter((f) => !use.includes(f))));
  } catch (e) { problem(e); }
  showControls();
}
function start() {
  for (const f of fields) $(f)?.addEventListener('input', () => change(f, $(f).value));
  $('setup').addEventListener('submit', (e) => { e.preventDefault(); predict(); });
  $('keep').onclick = () => { kept = shown; $('forget').hidden = false; predict(); };
  $('forget').onclick = () => { kept = null; $('forget').hidden = true; predict(); };
  for (const q of questions) $(q).addEventListener('input', () => { asked = false; writeAddress(); });
  document.querySelector('.skip').addEventListener('click', (e) => { e.preventDefault(); $('answer').focus(); });
  $('search').onclick = search;
  $('cancel').onclick = () => searching?.abort();
  $('copy').onclick = () => copy($('copy'), $('command').textContent, $('command'));
  $('file').onchange = () => $('file').files[0] && take($('file').files[0]);
  document.addEventListener('dragover', (e) => { e.preventDefault(); document.body.classList.add('dragging'); });
  document.addEventListener('dragleave', () => document.body.classList.remove('dragging'));
  document.addEventListener('drop', (e) => { e.preventDefault(); document.body.classList.remove('dragging'); if (e.dataTransfer.files[0]) take(e.dataTransfer.files[0]); });
  $('ask').addEventListener('submit', recommend);
  for (const b of document.querySelectorAll('nav button')) b.onclick = () => { view(b.dataset.view); if (shows === 'explore') predict(); };
  window.addEventListener('hashchange', () => { if (isSetup()) restore(); });
  restore();
  fillLists();
  fetch('v1/measured', { headers: token ? { Authorization: 'Bearer ' + token } : {} }).then((r) => r.json()).then((a) => { $('health-tab').hidden = !(a.rows || []).length; }).catch(() => {});
}
start();
