// ---- four questions
// A date becomes the time until then; days and weeks become hours.
function untilWhen(text) {
  const long = text.match(/^([\d.]+)\s*([dw])(ays?|eeks?)?$/i);
  if (long) return Number(long[1]) * (long[2].toLowerCase() === 'w' ? 168 : 24) + 'h';
  if (!/^\d{4}-\d/.test(text)) return text;
  const left_h = (new Date(/[ T]\d/.test(text) ? text.replace(' ', 'T') : text + 'T00:00') - Date.now()) / 3.6e6;
  if (!(left_h > 0)) throw new Error(`until when: expected a date to come, got ${text}`);
  return left_h.toFixed(2) + 'h';
}
function questionsRead() {
  const length = $('a-length').value.trim(), tokens = /[a-z]$/i.test(length);
  const s = { ...initial, system: checked('system', $('a-system').value), workload: checked('workload', $('a-workload').value), framework: $('a-framework').value || 'all' };
  s[tokens ? 'tokens' : 'epochs'] = checked(tokens ? 'tokens' : 'epochs', length);
  return { s, most: checked('nodes', $('a-most').value), deadline: untilWhen($('a-deadline').value.trim()) };
}
async function recommend(event) {
  event?.preventDefault();
  const out = $('advice');
  asked = true;
  writeAddress();
  out.replaceChildren(make('p', {}, 'Computing…'));
  try {
    const { s, most, deadline } = questionsRead();
    const nodes = [...series(most).filter((n) => n <= most)];
    const all = await post('predict', options(s, { nodes, deadline })), advice = all.advice, pick = advice?.deadline?.nodes ? advice.deadline : advice?.fastest;
    if (!pick) throw new Error(`${s.workload} does not fit in the memory of these GPUs on up to ${plural(most, 'node')}; more nodes, or a machine with more memory`);
    const row = all.results.find((r) => r.framework === advice.framework && r.nodes === pick.nodes), meets = Boolean(advice.deadline?.nodes);
    out.replaceChildren(make('h2', {}, meets ? `Take ${plural(pick.nodes, 'node')} with ${advice.framework}` : 'The deadline cannot be met'),
      make('p', {}, meets ? `It is ${pick.why}.` : `${advice.deadline?.why || ''} The fastest: ${plural(pick.nodes, 'node')} with ${advice.framework}, ${pick.why}.`),
      make('p', {}, (known(row.run_s) ? `The training takes ${seconds(row.run_s)}${known(row.cost) ? ` and costs ${digits(row.cost, 4)} ${row.currency || ''}` : ''}. ` : '') +
        `80 % prediction interval of an iteration: ${between(row.iteration_low_s, row.iteration_high_s)}. Bottleneck: ${row.bottleneck}.${row.plan ? ` Plan: ${row.plan}.` : ''}`));
    out.append(make('h3', {}, 'The alternatives'), make('ul', {}, ...['knee', 'fastest', 'cheapest', 'below_80'].filter((k) => advice[k]).map((k) => make('li', {}, (advice[k].nodes ? plural(advice[k].nodes, 'node') + ': ' : '') + advice[k].why))));
    const chosen = { ...s, framework: advice.framework, nodes: pick.nodes };
    out.append(make('div', { class: 'buttons' }, button('Explore this set-up', () => { state = chosen; refused = {}; view('explore'); predict(); })));
    await addJob(out, chosen, row);
  } catch (e) {
    out.replaceChildren(make('p', { class: 'problem', role: 'alert' }, said(e)));
  }
}
// The training's own job where the framework has one, else the job that measures it.
async function addJob(out, s, row) {
  for (const kind of ['sbatch', 'measure']) {
    const [title, name] = EXPORTS[kind];
    try {
      const of = kind === 'measure' ? { ...s, precision: row.precision, batch: row.batch_per_device_samples } : s, text = await exported(kind, of);
      out.append(make('h3', {}, title));
      if (kind === 'measure') {
        const line = `dlmodel slurm submit --framework ${quote(s.framework)} --workload ${quote(s.workload)} --nodes ${s.nodes} --batch-per-device ${of.batch} --precision ${of.precision}`;
        out.append(make('p', {}, 'It runs in a folder with the network. This command makes the folder and submits the job:'), make('div', { class: 'command' }, make('code', {}, line), copyButton(line, 'Copy the command')));
      }
      out.append(...textBlock(title, name, text));
      return;
    } catch { /* the next one */ }
  }
}

// ---- measured runs of the service
async function health() {
  try {
    const a = await list('measured'), rows = (a.rows || []).filter((r) => !r.skipped), off = rows.filter(outside);
    $('health-sentence').textContent = `${plural(rows.length, 'run')}; ${off.length} outside the prediction interval.`;
    drawHealth(rows);
    table($('health-rows'), ['run', 'framework', 'model', 'GPUs', 'measured', 'predicted', 'time error %', 'likely cause'], [...off, ...rows.filter((r) => !off.includes(r))].map((r) => [r.id, r.framework, r.workload, r.devices,
      digits(r.measured, 4) + ' ' + r.unit, digits(r.predicted, 4), digits(r.time_error_pct), r.cause || (off.includes(r) ? 'unknown' : '')]));
  } catch (e) { $('health-sentence').textContent = said(e); }
}
