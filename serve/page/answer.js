// ---- predicting
let busy = false, again = false, frameworksOf = '', later = 0, shown = null, others = null, waiting = 0, serviceRuns = [];
const PAUSE_MS = 200;
function problem(e) {
  $('problem').hidden = false;
  $('problem').textContent = said(e);
  $('sentence').textContent = 'No prediction for this set-up.';
  $('brief').textContent = '';
  for (const id of ['key', 'warnings']) $(id).replaceChildren();
  $('detail').classList.add('stale');
}
// Powers of two up to twice the nodes, and the nodes themselves.
function series(n) {
  const all = new Set([n]);
  for (let i = 1; i <= Math.max(2 * n, 4) && i <= 65536; i *= 2) all.add(i);
  return [...all].sort((a, b) => a - b);
}
// One request at a time, always for where the controls are now: what they passed in between is left out.
async function predict() {
  showControls();
  writeAddress();
  $('command').textContent = commandLine(state);
  clearTimeout(later);
  if (isRefused()) { problem(new Error(Object.values(refused).join('; '))); return; }
  if (busy) { again = true; return; }
  busy = true;
  do {
    again = false;
    await answer({ ...state });
  } while (again);
  busy = false;
  later = setTimeout(compareFrameworks, PAUSE_MS);
}
// Node counts that the plan cannot have are not among the rows; alone, the service says why.
async function scaling(s) {
  let rows = [];
  try { rows = (await post('predict', options(s, { nodes: series(s.nodes) }))).results; } catch (e) { if (!(e instanceof Problem) || e.status >= 500) throw e; }
  if (!rows.some((r) => r.nodes === s.nodes)) rows.push(...(await post('predict', options(s))).results);
  return rows.sort((a, b) => a.nodes - b.nodes);
}
const at = (rows, s) => rows.find((r) => r.nodes === s.nodes);
async function answer(s) {
  try {
    if (kept && !kept.rows) {
      const rows = await scaling(kept.state);
      kept = { ...kept, rows, row: at(rows, kept.state) };
    }
    const rows = await scaling(s);
    if (isRefused()) return; // by now a field is wrong, which is what the page says
    $('problem').hidden = true;
    $('detail').classList.remove('stale');
    show(s, rows, at(rows, s));
  } catch (e) { if (!isRefused()) problem(e); }
}
// All frameworks are many predictions: once the controls rest.
async function compareFrameworks() {
  const s = { ...state }, key = JSON.stringify(options(s, { framework: '' }));
  if (key === frameworksOf || !shown || !$('problem').hidden) return;
  try {
    others = { state: s, rows: (await post('predict', options(s, { framework: 'all' }))).results };
    frameworksOf = key;
    drawFrameworks(others.state, others.rows);
  } catch {
    others = null; // a plan that one framework alone can have
    $('f-frameworks').hidden = true;
  }
}
const sameSetup = (a, b) => names.every((f) => a[f] === b[f]);
function comparison(s, row) {
  if (!kept || sameSetup(kept.state, s) || !row.fits || !kept.row.fits) return '';
  const change = row.iteration_s && rate(row) / rate(kept.row) - 1;
  return Math.abs(change) < .0005 ? ' As fast as the pinned set-up.' : ` ${percent(Math.abs(change))} ${change < 0 ? 'slower' : 'faster'} than the pinned set-up.`;
}
function sentenceOf(s, row) {
  const where = `${plural(row.devices, 'GPU')} (${plural(row.nodes, 'node')} of ${s.system})`;
  if (!row.fits) return `${s.workload} does not fit on ${where} with ${s.framework}: a GPU needs ${gib(row.memory.total_bytes)} and has ${gib(row.memory.capacity_bytes)}.`;
  return `${s.framework} trains ${s.workload} on ${where} at ${digits(rate(row), 4)} ${unitOf(row)}; 80 % prediction interval: ${between(row.iteration_low_s, row.iteration_high_s)} per iteration. ` +
    `The bottleneck is ${row.bottleneck}, ${percent(row.bottleneck_share)} of the time.`;
}
function show(s, rows, row) {
  if (!shown) performance.mark('answered'); // tests/serve/timing.py reads it
  shown = { state: s, rows, row };
  $('sentence').textContent = sentenceOf(s, row) + comparison(s, row);
  $('brief').textContent = row.fits ? `${digits(rate(row), 4)} ${unitOf(row)} · ${seconds(row.iteration_s)} (${between(row.iteration_low_s, row.iteration_high_s)})` : `Does not fit: ${gib(row.memory.total_bytes)} of ${gib(row.memory.capacity_bytes)}`;
  const facts = KEY.filter(([, f]) => f(row) && f(row) !== '–');
  $('key').replaceChildren(...facts.map(([n, f, note]) => make('div', {}, make('dt', {}, n), make('dd', {}, f(row)), make('dd', { class: 'small' }, note(row)))));
  $('warnings').replaceChildren(...row.warnings.map((w) => make('li', {}, w)));
  drawScaling(s, rows, kept?.rows, measuredPoints(s, row));
  const both = (bar) => [bar(kept ? 'now' : 'this set-up', row), ...(kept ? [bar('pinned', kept.row)] : [])];
  if (row.fits) drawBars('f-time', 'Time of an iteration', `Of ${seconds(row.iteration_s)}: ${PARTS.filter(([k]) => row[k] > 0).map(([k, n]) => n + ' ' + seconds(row[k])).join(', ')}.`, both(timeBar), seconds);
  else $('f-time').hidden = true;
  drawBars('f-memory', 'Memory of a GPU; dashed: its limit', `${gib(row.memory.total_bytes)} of ${gib(row.memory.capacity_bytes)}.`, both(memoryBar), gib);
  showNumbers(s, row);
  $('forget').hidden = !kept;
}
const speed = (f) => (r) => (r.fits ? f(r) : '–');
// name, the value, what stands small below it
const KEY = [['Throughput', (r) => r.fits && `${digits(rate(r), 4)} ${unitOf(r)}`, (r) => `${digits(rate(r) / r.devices)} per GPU`],
  ['Iteration', (r) => r.fits && seconds(r.iteration_s), (r) => between(r.iteration_low_s, r.iteration_high_s)],
  ['Efficiency', (r) => r.fits && percent(r.scaling_efficiency), (r) => `on ${plural(r.nodes, 'node')}`],
  ['Memory of a GPU', (r) => gib(r.memory.total_bytes), (r) => `of ${gib(r.memory.capacity_bytes)}`],
  ['Bottleneck', (r) => r.fits && r.bottleneck, (r) => `${percent(r.bottleneck_share)} of the time`],
  ['Training', (r) => known(r.run_s) && seconds(r.run_s), (r) => (known(r.cost) ? `${digits(r.cost, 4)} ${r.currency || ''}` : `${digits(r.gpu_hours)} GPU-hours`)]];
const epochEnergy = (r) => (known(r.iteration_energy_j) && known(r.epoch_s) ? r.iteration_energy_j * r.epoch_s / r.iteration_s : null);
// name, text, the number that a comparison is of
const NUMBERS = [['iteration', speed((r) => `${seconds(r.iteration_s)} (${between(r.iteration_low_s, r.iteration_high_s)})`), (r) => (r.fits ? r.iteration_s : null)], ['samples/s', (r) => digits(r.throughput_samples_per_s, 4), (r) => r.throughput_samples_per_s],
  ['tokens/s', (r) => digits(r.tokens_per_s, 4), (r) => r.tokens_per_s], ['efficiency', (r) => percent(r.scaling_efficiency), (r) => r.scaling_efficiency], ['bottleneck', speed((r) => `${r.bottleneck}, ${percent(r.bottleneck_share)}`)],
  ['plan', (r) => r.plan || r.strategy || '–'], ['global batch', (r) => count(r.global_batch_samples), (r) => r.global_batch_samples], ['samples per GPU', (r) => digits(r.batch_per_device_samples, 4)], ['precision', (r) => r.precision], ['release', (r) => r.release || '–'],
  ['memory of a GPU', (r) => gib(r.memory.total_bytes), (r) => r.memory.total_bytes], ['MFU', (r) => percent(r.mfu_frac), (r) => r.mfu_frac], ['epoch', (r) => seconds(r.epoch_s), (r) => r.epoch_s], ['energy of an epoch', (r) => energy(epochEnergy(r)), epochEnergy],
  ['training', (r) => seconds(r.run_s), (r) => r.run_s], ['GPU-hours', (r) => digits(r.gpu_hours), (r) => r.gpu_hours],
  ['cost', (r) => (known(r.cost) ? digits(r.cost, 4) + ' ' + (r.currency || '') : '–'), (r) => r.cost],
  ['energy', (r) => energy(r.energy_j), (r) => r.energy_j], ['power', (r) => (known(r.power_w) && r.fits ? digits(r.power_w / 1e3) + ' kW' : '–')]];
const signed = (a, b) => (known(a) && known(b) && b !== 0 ? (Math.abs(a / b - 1) < .0005 ? 'equal' : (a > b ? '+' : '−') + digits(100 * Math.abs(a / b - 1), 2) + ' %') : '');
const asText = (s, f) => (s[f] === '' ? 'default' : String(s[f]));
// The table of results. With a pinned set-up: the settings that differ come first, and each number has its change.
function showNumbers(s, row) {
  const settings = kept ? names.filter((f) => s[f] !== kept.state[f]) : [];
  const line = ([n, f, v]) => [n, f(row), ...(kept ? [f(kept.row), v ? signed(v(row), v(kept.row)) : ''] : [])];
  table($('numbers'), kept ? ['', 'now', 'pinned', 'change'] : ['', 'this set-up'], [...settings.map((f) => [LABELS[f] || f, asText(s, f), asText(kept.state, f), 'differs']),
    ...NUMBERS.map(line).filter((r) => r.slice(1, kept ? 3 : 2).some((v) => v !== '–'))]);
}
const LABELS = { system: 'machine', workload: 'model', inter: 'network between nodes', intra: 'links in a node', batch: 'samples per GPU', global: 'global batch', more: 'other options' };

// ---- measured runs of this set-up and precision: of the user's file, else those of the service. Their batch may differ: titles say it.
function measuredPoints(s, row) {
  const perSample = known(row.tokens_per_s) ? row.tokens_per_s / row.throughput_samples_per_s : 1;
  const rates = { 'samples/s': (r) => r.measured * perSample, 'tokens/s': (r) => (perSample > 1 ? r.measured : NaN), s: (r) => r.global_batch_samples / r.measured * perSample };
  return (own.measured?.rows || serviceRuns).filter((r) => !r.skipped && r.system === s.system && r.framework === s.framework && r.workload === s.workload && r.precision === row.precision && rates[r.unit])
    .map((r) => ({ id: r.id, devices: r.devices, batch: r.global_batch_samples, each: rates[r.unit](r) / r.devices })).filter((p) => known(p.each));
}
// As wide as the figures are now.
function redraw() {
  if (shown && shows === 'explore' && $('problem').hidden) show(shown.state, shown.rows, shown.row);
  if (others && !$('f-frameworks').hidden) drawFrameworks(others.state, others.rows);
}
function changed() {
  if (planned && !searching) forgetPlans(); // they were for another set-up
  if (!waiting) waiting = requestAnimationFrame(() => { waiting = 0; predict(); });
}
function change(field, text) {
  try {
    state[field] = checked(field, text);
    delete refused[field];
    if (EITHER[field] && state[field] !== '') { state[EITHER[field]] = ''; delete refused[EITHER[field]]; }
  } catch (e) { refused[field] = e.message; }
  changed();
}
