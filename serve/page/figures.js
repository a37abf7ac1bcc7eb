// ---- figures: an SVG, its numbers as a table, both to be saved
let W = 560; // as wide as the figure is, so that its letters have the size of the page's
const H = 280;
function room(id) { // on wide screens the letters of the page are larger, and so are those of its figures
  const f = $(id), scale = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
  f.hidden = false;
  W = Math.min(900, Math.max(280, (f.clientWidth || 584) / scale - 24));
}
const words = (x, y, t, more = {}) => draw('text', { x, y, ...more }, String(t));
const titled = (e, t) => { e.append(draw('title', {}, t)); return e; };
function figure(id, caption, question, svg, header, rows) {
  const f = $(id);
  svg.setAttribute('role', 'img');
  svg.setAttribute('aria-label', question);
  const numbers = make('table');
  table(numbers, header, rows);
  const details = make('details', {}, make('summary', {}, 'As a table'), make('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption + ' as a table' }, numbers));
  details.open = Boolean(f.querySelector('details')?.open);
  f.replaceChildren(make('figcaption', {}, caption), svg, make('div', { class: 'tools' },
    button('SVG', () => save(id.slice(2) + '.svg', 'image/svg+xml', standalone(svg)), caption + ' as SVG'),
    button('CSV', () => save(id.slice(2) + '.csv', 'text/csv', csv([header, ...rows])), caption + ' as CSV')), details);
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
  const { width, height } = copy.viewBox.baseVal;
  copy.prepend(draw('rect', { width, height, fill: getComputedStyle(document.documentElement).backgroundColor }));
  return new XMLSerializer().serializeToString(copy);
}
function ticks(most) {
  const step = 10 ** Math.floor(Math.log10(most / 2)), s = most / step > 8 ? 2 * step : step, all = [];
  for (let v = 0; v <= most * 1.0001; v += s) all.push(v);
  return all;
}

// One unit per answer: tokens where the model has them, else samples.
const unitOf = (r) => (known(r.tokens_per_s) ? 'tokens/s' : 'samples/s');
const rate = (r) => r.tokens_per_s ?? r.throughput_samples_per_s;
const rateLow = (r) => rate(r) * r.iteration_s / r.iteration_high_s, rateHigh = (r) => rate(r) * r.iteration_s / r.iteration_low_s;

// Throughput of one GPU over their number: a flat line scales, a falling one does not. Rows that do not fit have no speed: a cross on the axis.
function drawScaling(s, rows, before, points) {
  const id = 'f-scaling', fit = rows.filter((r) => r.fits), out = rows.filter((r) => !r.fits), unit = unitOf(fit[0] || rows[0]), old = (before || []).filter((r) => r.fits);
  room(id);
  const svg = draw('svg', { viewBox: `0 0 ${W} ${H}` }), left = 60, right = 16, top = 24, bottom = 62;
  const each = (r) => rate(r) / r.devices, low = (r) => rateLow(r) / r.devices, high = (r) => rateHigh(r) / r.devices;
  const most = Math.max(1e-9, ...fit.map(high), ...old.map(each), ...points.map((p) => p.each)) * 1.02;
  const gpus = [...rows, ...old, ...points].map((r) => r.devices), now = rows.find((r) => r.nodes === s.nodes).devices;
  const first = Math.log2(Math.min(...gpus)), span = Math.max(1, Math.log2(Math.max(...gpus)) - first);
  const x = (n) => left + ((Math.log2(n) - first) / span) * (W - left - right), y = (v) => H - bottom - (v / most) * (H - top - bottom);
  for (const t of fit.length ? ticks(most) : [0]) svg.append(draw('line', { class: 'grid', x1: left, x2: W - right, y1: y(t), y2: y(t) }), words(left - 6, y(t) + 4, digits(t), { 'text-anchor': 'end', class: 'soft' }));
  let free = 0;
  for (const n of [...new Set(gpus)].sort((a, b) => a - b)) {
    const wide = 8 * String(n).length;
    if (n !== now && (x(n) - wide / 2 < free || Math.abs(x(n) - x(now)) < wide + 4)) continue;
    svg.append(words(x(n), H - bottom + 18, n, { 'text-anchor': 'middle', class: n === now ? 'strong' : 'soft' }));
    free = x(n) + wide / 2 + 4;
  }
  svg.append(words((left + W - right) / 2, H - bottom + 36, 'GPUs', { 'text-anchor': 'middle', class: 'soft' }));
  svg.append(words(left, 14, unit + ' per GPU', { class: 'soft' }));
  svg.append(draw('polygon', { class: 'band', points: [...fit.map((r) => `${x(r.devices)},${y(high(r))}`), ...[...fit].reverse().map((r) => `${x(r.devices)},${y(low(r))}`)].join(' ') }));
  if (fit.length === 1) svg.append(draw('line', { class: 'whisker', x1: x(fit[0].devices), x2: x(fit[0].devices), y1: y(low(fit[0])), y2: y(high(fit[0])) }));
  // a line does not cross a node count that does not fit
  const line = (all, css) => {
    for (let i = 1; i < all.length; i++) if (all[i].fits && all[i - 1].fits) svg.append(draw('line', { class: 'line ' + css, x1: x(all[i - 1].devices), y1: y(each(all[i - 1])), x2: x(all[i].devices), y2: y(each(all[i])) }));
  };
  line(before || [], 'l2 dashed');
  line(rows, 'l1');
  const about = (r) => `${plural(r.nodes, 'node')}: ${digits(each(r))} ${unit} per GPU (${digits(low(r))} to ${digits(high(r))}), efficiency ${percent(r.scaling_efficiency)}`;
  for (const r of old) svg.append(titled(draw('circle', { class: 's2', cx: x(r.devices), cy: y(each(r)), r: 3 }), 'pinned, ' + about(r)));
  for (const r of fit) svg.append(titled(draw('circle', { class: 's1', cx: x(r.devices), cy: y(each(r)), r: r.nodes === s.nodes ? 6 : 3.5 }), about(r)));
  for (const r of out) svg.append(titled(draw('path', { class: 'cross', d: `M${x(r.devices) - 5},${y(0) - 5}l10,10m0,-10l-10,10` }), `${plural(r.nodes, 'node')}: does not fit, ${gib(r.memory.total_bytes)} of ${gib(r.memory.capacity_bytes)}`));
  for (const p of points) svg.append(titled(draw('path', { class: 'measured', d: `M${x(p.devices)},${y(p.each) - 6}l6,6l-6,6l-6,-6z` }), `measured (${p.id}): ${digits(p.each)} ${unit} per GPU on ${plural(p.devices, 'GPU')}${known(p.batch) ? ', global batch ' + count(p.batch) : ''}`));
  const legend = [...(fit.length ? [['s1', 'predicted']] : []), ...(old.length ? [['s2', 'pinned']] : []), ...(points.length ? [['measured', 'measured']] : []), ...(out.length ? [['cross', 'does not fit']] : [])];
  let at = left;
  for (const [css, name] of legend) {
    const yy = H - 10, mark = css === 'cross' ? draw('path', { class: css, d: `M${at},${yy - 9}l9,9m0,-9l-9,9` }) : css === 'measured' ? draw('path', { class: css, d: `M${at + 5},${yy - 10}l5,5l-5,5l-5,-5z` }) : draw('circle', { class: css, cx: at + 5, cy: yy - 4, r: 4.5 });
    svg.append(mark, words(at + 15, yy, name));
    at += 30 + 7.4 * name.length;
  }
  const question = fit.length ? `Does it scale? ${digits(each(fit[0]))} ${unit} per GPU on ${plural(fit[0].nodes, 'node')}, ${digits(each(fit.at(-1)))} on ${fit.at(-1).nodes}.` : 'It fits on no number of nodes shown.';
  figure(id, `Throughput per GPU${s.global ? ' at a global batch of ' + count(s.global) : ''}; band: 80 % interval`, question, svg, ['nodes', 'GPUs', unit, 'low', 'high', 'efficiency %', 'measured'],
    rows.map((r) => [r.nodes, r.devices, ...(r.fits ? [rate(r), rateLow(r), rateHigh(r)].map((v) => digits(v, 4)) : ['does not fit', '–', '–']), digits(100 * r.scaling_efficiency),
      points.filter((p) => p.devices === r.devices).map((p) => digits(p.each * p.devices, 4)).join(', ')]));
}

const PARTS = [['forward_s', 'forward', 's1'], ['backward_s', 'backward', 's3'], ['update_s', 'update', 's4'], ['exposed_comm_s', 'communication', 's2'],
  ['exposed_input_s', 'input', 's5'], ['bubble_s', 'pipeline bubble', 's7'], ['overhead_s', 'host and stragglers', 's6']];
// Bars of parts, one above another.
function drawBars(id, caption, question, bars, unit) {
  room(id);
  const rowH = 56, h = 12 + rowH * bars.length, svg = draw('svg', {});
  const shownParts = bars[0].parts.filter((p) => bars.some((b) => b.parts.find((q) => q.name === p.name).value > 0));
  const most = Math.max(...bars.map((b) => Math.max(b.limit || 0, b.parts.reduce((s, p) => s + p.value, 0)))) || 1;
  const x = (v) => 8 + (v / most) * (W - 16), rows = [];
  bars.forEach((b, i) => {
    const y = 26 + rowH * i;
    let at = 0;
    svg.append(words(8, y - 8, b.name));
    for (const p of b.parts.filter((q) => q.value > 0)) {
      const from = x(at), width = x(at + p.value) - from;
      svg.append(titled(draw('rect', { class: p.css, x: from, y, width: Math.max(width - 1, .5), height: 26 }), `${p.name}: ${unit(p.value)}`));
      rows.push([b.name, p.name, unit(p.value)]);
      at += p.value;
    }
    if (b.limit) svg.append(titled(draw('line', { class: 'limit', x1: x(b.limit), x2: x(b.limit), y1: y - 4, y2: y + 30 }), 'memory of a GPU: ' + unit(b.limit)));
  });
  // the legend is part of the picture, so that a saved one has it too
  const label = (p) => p.name + ' ' + bars.map((b) => unit(b.parts.find((q) => q.name === p.name).value)).join(' / ');
  let lx = 8, ly = h + 8;
  for (const p of shownParts) {
    const width = 32 + 7.2 * label(p).length;
    if (lx > 8 && lx + width > W) { lx = 8; ly += 22; }
    svg.append(draw('rect', { class: p.css, x: lx, y: ly - 11, width: 12, height: 12 }), words(lx + 17, ly, label(p)));
    lx += width;
  }
  svg.setAttribute('viewBox', `0 0 ${W} ${ly + 10}`);
  figure(id, caption, question, svg, ['set-up', 'part', 'value'], rows);
}
const timeBar = (name, r) => ({ name: `${name}: ${seconds(r.iteration_s)} per iteration`, parts: PARTS.map(([k, n, css]) => ({ name: n, value: r[k] || 0, css })) });
const MEMORY = [['weights_bytes', 'weights', 's1'], ['gradients_bytes', 'gradients', 's2'], ['optimizer_bytes', 'optimizer', 's4'], ['activations_bytes', 'activations', 's3'],
  ['workspace_bytes', 'workspace', 's5'], ['buffers_bytes', 'buffers', 's7'], ['context_bytes', 'context', 's6']];
const memoryBar = (name, r) => ({ name: `${name}: ${gib(r.memory.total_bytes)} of ${gib(r.memory.capacity_bytes)}${r.fits ? '' : ', does not fit'}`, limit: r.memory.capacity_bytes,
  parts: MEMORY.map(([k, n, css]) => ({ name: n, value: r.memory[k] || 0, css })) });

function drawFrameworks(s, all) {
  const id = 'f-frameworks', rows = all.filter((r) => r.fits && r.framework !== 'ideal').sort((a, b) => rate(b) - rate(a)), out = all.filter((r) => !r.fits).map((r) => r.framework);
  room(id);
  const most = Math.max(...rows.map(rateHigh), 1e-9), top = rows.slice(0, 10), lines = Math.max(top.length, 1);
  const h = 22 * lines + 30, left = Math.min(W / 2, 14 + 7.6 * Math.max(...top.map((r) => r.framework.length), 8)), svg = draw('svg', { viewBox: `0 0 ${W} ${h}` }), x = (v) => left + (v / most) * (W - left - 78);
  top.forEach((r, i) => {
    const y = 6 + 22 * i;
    svg.append(words(left - 6, y + 13, r.framework, { 'text-anchor': 'end', ...(r.framework === s.framework ? { class: 'strong' } : {}) }),
      titled(draw('rect', { class: r.framework === s.framework ? 's1' : 's6', x: left, y: y + 2, width: Math.max(1, x(rate(r)) - left), height: 14 }), `${r.framework} ${r.release || ''}: ${r.plan || ''}`),
      draw('line', { class: 'whisker', x1: x(rateLow(r)), x2: x(rateHigh(r)), y1: y + 9, y2: y + 9 }), words(x(rateHigh(r)) + 5, y + 13, digits(rate(r))));
  });
  svg.append(words(6, h - 6, top.length ? `${unitOf(top[0])}; overlapping intervals: indistinguishable` : 'No framework fits.', { class: 'soft' }));
  figure(id, `Frameworks on ${plural(s.nodes, 'node')}`, top.length ? `The fastest is ${top[0].framework} with ${digits(rate(top[0]))} ${unitOf(top[0])}.` : 'No framework fits.', svg,
    ['framework', 'release', top.length ? unitOf(top[0]) : 'samples/s', 'low', 'high', 'plan'], [...rows.map((r) => [r.framework, r.release || '–', ...[rate(r), rateLow(r), rateHigh(r)].map((v) => digits(v, 4)), r.plan || '–']), ...out.map((f) => [f, '–', 'does not fit', '–', '–', '–'])]);
}

function drawHealth(rows) {
  const id = 'f-health';
  room(id);
  const svg = draw('svg', { viewBox: `0 0 ${W} ${H}` }), left = 70, bottom = 44, all = rows.flatMap((r) => [r.measured, r.predicted]).filter((v) => v > 0);
  if (!all.length) return;
  const low = Math.log10(Math.min(...all)) - .03, high = Math.log10(Math.max(...all)) + .05;
  const x = (v) => left + ((Math.log10(v) - low) / (high - low)) * (W - left - 16), y = (v) => H - bottom - ((Math.log10(v) - low) / (high - low)) * (H - bottom - 12);
  svg.append(draw('line', { class: 'axis', x1: x(10 ** low), y1: y(10 ** low), x2: x(10 ** high), y2: y(10 ** high) }));
  for (let e = Math.floor(low); e <= high; e++) for (const v of (high - low > 2 ? [1] : [1, 2, 5]).map((m) => m * 10 ** e)) {
    if (v < 10 ** low || v > 10 ** high) continue;
    svg.append(words(x(v), H - bottom + 18, digits(v), { 'text-anchor': 'middle', class: 'soft' }), words(left - 6, y(v) + 4, digits(v), { 'text-anchor': 'end', class: 'soft' }));
  }
  svg.append(words(W / 2, H - 6, 'measured', { 'text-anchor': 'middle', class: 'soft' }), words(left + 4, 22, 'predicted', { class: 'soft' }));
  for (const r of rows) svg.append(titled(outside(r) ? draw('rect', { class: 's7', x: x(r.measured) - 5, y: y(r.predicted) - 5, width: 10, height: 10 }) : draw('circle', { class: 's1', cx: x(r.measured), cy: y(r.predicted), r: 4 }),
    `${r.id}: measured ${digits(r.measured)}, predicted ${digits(r.predicted)} ${r.unit}`));
  figure(id, 'Predicted over measured; squares lie outside their interval', `${rows.length} runs; on the line the prediction is right.`, svg, ['run', 'measured', 'predicted', 'unit'], rows.map((r) => [r.id, digits(r.measured, 4), digits(r.predicted, 4), r.unit]));
}
const outside = (r) => known(r.predicted_low) && (r.measured < r.predicted_low || r.measured > r.predicted_high);
