// ---- searching, with progress, until it is done or cancelled
let searching = null;
function forgetPlans() {
  planned = false;
  $('search-state').textContent = '';
  for (const id of ['common', 'plans', 'others']) $(id).replaceChildren();
}
async function search() {
  if (isRefused()) return;
  searching = new AbortController();
  planned = true;
  writeAddress();
  $('search').hidden = true;
  $('cancel').hidden = false;
  $('search-state').textContent = 'Searching…';
  const s = { ...state }, o = options(s);
  delete o.batch_per_device;
  o.global_batch = s.global || (shown && sameSetup(shown.state, s) ? shown.row.global_batch_samples : undefined);
  try {
    const answer = await ask('v1/search', JSON.stringify(o), { signal: searching.signal, accept: 'text/event-stream' });
    for await (const event of events(answer.body)) {
      if (event.name === 'progress') { const p = JSON.parse(event.data); $('search-state').textContent = `Searching: ${percent(p.done_frac)} after ${seconds(p.elapsed_s)}`; }
      if (event.name === 'problem') throw new Problem(JSON.parse(event.data), 422);
      if (event.name === 'answer') showPlans(JSON.parse(event.data));
    }
  } catch (e) {
    $('search-state').textContent = e.name === 'AbortError' ? 'Cancelled.' : said(e);
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
const PLAN = [['strategy', 'strategy'], ['dp', 'data'], ['tp', 'tensor'], ['pp', 'pipeline'], ['sp', 'context'], ['ep', 'expert'], ['micro_batch_samples', 'micro-batch'], ['schedule', 'schedule'],
  ['virtual_stages', 'virtual stages'], ['recompute', 'recomputation'], ['zero', 'ZeRO'], ['sequence_parallel', 'sequence parallel'], ['mapping', 'mapping'], ['nodes', 'nodes']];
const RANKED = ['dp', 'tp', 'pp', 'sp', 'ep', 'virtual_stages']; // a degree of 1 is not shown
function planText(r, fields) {
  const part = ([k, n]) => (r[k] === true ? n : r[k] === false ? 'no ' + n : r[k] === null || r[k] === undefined || (RANKED.includes(k) && r[k] === 1) || (k === 'zero' && r.strategy === 'zero' + r[k]) ? ''
    : r[k] === 'none' ? 'no ' + n : `${n} ${r[k]}`);
  return fields.map(part).filter(Boolean).join(', ');
}
// One line a plan: what all have in common stands above the table.
function showPlans(a) {
  const rows = a.results, tied = rows.filter((r) => r.tied_with_best).length, best = rows[0];
  $('search-state').textContent = `${plural(a.evaluated_count, 'plan')} evaluated in ${seconds(a.elapsed_s)}.` + (!rows.length ? ' None fits in memory.' : tied > 1 ? ` The first ${tied} are indistinguishable.` : '');
  const differs = PLAN.filter(([k]) => rows.some((r) => r[k] !== best[k])), common = PLAN.filter((p) => !differs.includes(p));
  $('common').textContent = rows.length > 1 ? `All of them: ${planText(best, common)}.` : '';
  table($('plans'), ['plan', 'iteration', 'slower', 'throughput', 'memory', 'MFU', 'take'], rows.map((r, i) => [rows.length > 1 ? planText(r, differs) : planText(r, PLAN),
    `${seconds(r.iteration_s)} (${between(r.iteration_low_s, r.iteration_high_s)})`, i ? signed(r.iteration_s, best.iteration_s).replace('equal', '0 %') : '–', `${digits(rate(r), 4)} ${unitOf(r)}`,
    `${digits(r.memory.total_bytes / 2 ** 30)} of ${gib(r.memory.capacity_bytes)}`, percent(r.mfu_frac),
    make('div', { class: 'buttons' }, button('Use', () => usePlan(r.command), `Use plan ${i + 1}`), copyButton(r.command, `Copy the command of plan ${i + 1}`))]));
  const part = (title, items) => (items.length ? [make('h3', {}, title), make('ul', {}, ...items.map((t) => make('li', {}, t)))] : []);
  const limits = (a.limits || []).filter((l) => known(l.cost_s)).sort((p, q) => q.cost_s - p.cost_s);
  $('others').replaceChildren(...part('Why other plans were rejected', Object.entries(a.rejected || {}).map(([k, n]) => `${plural(n, 'plan')}: ${k}`)), ...part('What limits the best plan', limits.map((l) => `${l.name}: ${seconds(l.cost_s)}`)));
}
function usePlan(command) {
  const found = fieldsOf(command);
  for (const f of names) if (FIELDS[f].block === 'plan') { state[f] = found[f] ?? initial[f]; delete refused[f]; }
  if (found.nodes) state.nodes = found.nodes;
  frameworksOf = '';
  predict(); // the plans stay: another can be tried
  $('answer').focus();
}

// ---- the set-up as a job or as the framework's configuration
const EXPORTS = {
  command: ['Command line', 'dlmodel.sh'], sbatch: ['Slurm job of the training', 'job.sh'], measure: ['Slurm job that measures it', 'measure.sh'],
  megatron: ['Megatron-LM arguments', 'megatron.sh'], torchtitan: ['torchtitan configuration', 'torchtitan.toml'], deepspeed: ['DeepSpeed configuration', 'deepspeed.json'],
};
const MEASURED = ['framework', 'workload', 'nodes', 'precision', 'optimizer', 'input', 'batch_per_device', 'global_batch', 'tp', 'pp'];
const measuringJob = (o) => ask('v1/script', JSON.stringify({ ...Object.fromEntries(MEASURED.filter((k) => o[k] !== undefined).map((k) => [k, o[k]])), ...(own.site ? { site: own.site.document } : {}) }));
async function exported(kind, s) {
  const o = options(s);
  if (kind === 'command') return commandLine(s) + '\n';
  if (kind === 'measure') return (await measuringJob(o)).text();
  return (await ask('v1/predict', JSON.stringify({ ...o, export: kind }))).text();
}
async function showExport() {
  const kind = $('export-kind').value, [title, name] = EXPORTS[kind];
  $('export-state').textContent = '';
  $('exported').replaceChildren();
  try {
    $('exported').replaceChildren(...textBlock(title, name, await exported(kind, state)));
    $('export-state').textContent = `${title}, for the set-up above.`;
  } catch (e) { $('export-state').textContent = said(e); }
}
