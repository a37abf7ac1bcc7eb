// ---- the user's own files: dropped anywhere, or chosen. What a file is follows from what is in it.
const OWN = { system: 'machine', workload: 'model', site: 'site of the Slurm jobs', measured: 'measured runs' };
function showOwn() {
  $('own-files').replaceChildren(...Object.keys(OWN).filter((k) => own[k]).map((k) => make('li', {}, `${OWN[k]}: ${own[k].name} `, button('Remove', () => {
    if (state[k] === own[k].name) state[k] = initial[k];
    delete own[k];
    showOwn();
    frameworksOf = '';
    predict();
  }, `Remove ${own[k].name}`))));
}
const plainName = (file) => file.name.replace(/\.\w+$/, '').replace(/[^\w-]+/g, '-') || 'mine';
const parsed = (text) => { try { return JSON.parse(text); } catch { return null; } };
const isTable = (text) => { const head = text.slice(0, text.search(/\n|$/)).split(','); return head.includes('value') && head.includes('framework'); };
// The service recognizes the file; a model that its kind leaves open is the one of the set-up.
async function imported(file, kind = 'auto', query = {}) {
  try {
    return await (await ask(`v1/import/${kind}?${new URLSearchParams(query)}`, file, { media: 'application/octet-stream' })).text();
  } catch (e) {
    if (query.workload || own.workload || !/--workload/.test(e.message)) throw e;
    return imported(file, kind, { ...query, workload: state.workload });
  }
}
async function takeMeasured(name, text) {
  const rows = (await post('compare', { files: [{ name, text }] })).rows || [];
  own.measured = { name, text, rows };
  const used = rows.filter((r) => !r.skipped), errors = used.map((r) => Math.abs(r.time_error_pct)).filter(known);
  const here = shown ? measuredPoints(state, shown.row).length : 0;
  return `${plural(used.length, 'run')} compared` + (errors.length ? `, mean error of the time ${digits(errors.reduce((s, v) => s + v, 0) / errors.length)} %` : '') +
    `; ${here ? plural(here, 'run') + ' of this set-up in the curve' : 'none of this machine, framework, model and precision'}. They correct the predictions for the same machine and framework.`;
}
function takeDocument(kind, name, document) {
  own[kind] = { name, document };
  if (kind !== 'site') { state[kind] = name; delete refused[kind]; }
  return `is the ${OWN[kind]} now, as ${name}.`;
}
async function takeText(file, text) {
  const document = parsed(text), format = document?.format;
  const kind = { 'dlmodel-system': 'system', 'dlmodel-workload': 'workload', 'dlmodel-site': 'site' }[format];
  if (kind) return takeDocument(kind, document.name && NAME.read(document.name) ? 'my-' + document.name : plainName(file), document);
  if (isTable(text)) return takeMeasured(file.name, text);
  if (!/\.(log|out|txt)$/i.test(file.name)) return takeImported(file, await imported(file));
  // a log has the runs, and for some frameworks the plan too
  const plan = await imported(file).catch(() => ''), runs = await imported(file, 'log').catch(() => '');
  if (!isTable(runs)) return takeImported(file, plan);
  if (!plan.startsWith('dlmodel predict')) return takeLog(file.name, runs);
  const message = takeImported(file, plan);
  await predict();
  return `${await takeLog(file.name, runs)} It ${message}`;
}
function takeImported(file, got) {
  const made = parsed(got), line = got.split('\n').find((l) => l.startsWith('dlmodel predict'));
  if (made?.format === 'dlmodel-workload') return takeDocument('workload', plainName(file), made);
  if (!line) throw new Error('neither a machine, model, site, table of runs, log, nor a script or configuration of a training');
  const found = fieldsOf(line);
  Object.assign(state, Object.fromEntries(names.filter((f) => FIELDS[f].block === 'plan').map((f) => [f, initial[f]])), { tokens: '', epochs: '' }, found);
  refused = {};
  return `gives the plan${found.workload ? ' and the model' : ''}: ${GISTS.plan(state)}, ${plural(state.nodes, 'node')}; the machine is yours to choose.`;
}
// A log says what ran, not where: its runs are of the machine, model and nodes that are set.
function takeLog(name, text) {
  const [head, ...lines] = text.trim().split('\n'), header = head.split(','), split = (l) => [...l.matchAll(/("(?:[^"]|"")*"|[^,]*)(?:,|$)/g)].map((m) => m[1]).slice(0, header.length);
  const row = shown?.row, usual = { system: state.system, workload: state.workload, nodes: state.nodes, devices_per_node: row ? row.devices / row.nodes : '', framework: state.framework, precision: row?.precision };
  const rows = lines.map((l) => split(l).map((v, i) => (v === '' && usual[header[i]] !== undefined ? String(usual[header[i]]) : v)));
  const batch = ['batch_per_device', 'global_batch'].map((k) => header.indexOf(k));
  for (const r of rows) if (batch.every((i) => i < 0 || r[i] === '') && batch[0] >= 0 && row) r[batch[0]] = String(row.batch_per_device_samples);
  return takeMeasured(name.replace(/\.\w+$/, '') + '.csv', [header, ...rows].map((r) => r.join(',')).join('\n') + '\n');
}
async function take(file) {
  $('own').textContent = `Reading ${file.name}…`;
  try {
    const binary = /\.(onnx|pt2|keras)$/i.test(file.name);
    const message = binary ? takeDocument('workload', plainName(file), JSON.parse(await imported(file, 'auto', /\.onnx$/i.test(file.name) ? { name: plainName(file) } : {}))) : await takeText(file, await file.text());
    $('own').textContent = `${file.name}: ${message}`;
    showOwn();
    frameworksOf = '';
    forgetPlans();
    await predict();
  } catch (e) { $('own').textContent = `${file.name}: ${said(e)}`; }
}
