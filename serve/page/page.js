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
async function fillLists() {
  try {
    const [systems, workloads, frameworks] = await Promise.all(['systems', 'workloads', 'frameworks'].map(list));
    $('systems').replaceChildren(...systems.map((s) => make('option', { value: s.name }, s.summary || '')));
    $('workloads').replaceChildren(...workloads.map((s) => make('option', { value: s.name }, s.summary || '')));
    if (systems.some((s) => s.name === 'local')) {
      PRESETS.machine['This host, calibrated'] = { system: 'local', nodes: 1 };
      fillPresets();
    }
    const group = (label, all) => make('optgroup', { label }, ...all.map((f) => make('option', { value: f.name, title: f.summary || '' }, f.name)));
    const use = frameworks.filter((f) => !f.status || f.status === 'maintained'), others = frameworks.filter((f) => !use.includes(f));
    $('framework').replaceChildren(group('maintained', use), group('retired, lossy or asynchronous', others));
    const chosen = $('a-framework').value;
    $('a-framework').replaceChildren(make('option', { value: '' }, 'any maintained one'), group('maintained', use), group('retired, lossy or asynchronous', others));
    setValue($('a-framework'), chosen);
  } catch (e) { problem(e); }
  showControls();
}
function fillPresets() {
  for (const b of blocks) $('preset-' + b).replaceChildren(make('option', { value: '' }, 'own choice'), ...Object.keys(PRESETS[b]).map((n) => make('option', { value: n }, n)));
}
function start() {
  fillPresets();
  $('export-kind').replaceChildren(...Object.entries(EXPORTS).map(([k, [title]]) => make('option', { value: k }, title)));
  for (const f of names) $(f).addEventListener('input', () => change(f, $(f).value));
  for (const f of Object.keys(POSITIONS)) $(f + '-slider').addEventListener('input', () => change(f, POSITIONS[f][Number($(f + '-slider').value)]));
  for (const b of blocks) $('preset-' + b).addEventListener('change', () => applyPreset(b, $('preset-' + b).value));
  if (matchMedia('(max-width: 59.99rem)').matches) for (const d of document.querySelectorAll('.block')) d.open = false;
  $('setup').addEventListener('submit', (e) => { e.preventDefault(); predict(); });
  $('keep').onclick = () => { kept = shown; predict(); };
  $('forget').onclick = () => { kept = null; $('forget').hidden = true; predict(); };
  $('reset').onclick = () => { state = { ...initial }; refused = {}; changed(); };
  for (const q of QUESTIONS) $(q).addEventListener('input', () => { asked = false; writeAddress(); });
  for (const a of document.querySelectorAll('.skip')) a.addEventListener('click', (e) => { e.preventDefault(); $(a.hash.slice(1)).focus(); });
  $('search').onclick = search;
  $('cancel').onclick = () => searching?.abort();
  $('copy').onclick = () => copy($('copy'), $('command').textContent, $('command'));
  $('export').onclick = showExport;
  $('file').onchange = () => $('file').files[0] && take($('file').files[0]);
  document.addEventListener('dragover', (e) => { e.preventDefault(); document.body.classList.add('dragging'); });
  document.addEventListener('dragleave', () => document.body.classList.remove('dragging'));
  document.addEventListener('drop', async (e) => {
    e.preventDefault();
    document.body.classList.remove('dragging');
    for (const f of e.dataTransfer.files) await take(f);
  });
  $('ask').addEventListener('submit', recommend);
  for (const b of document.querySelectorAll('nav button')) b.onclick = () => { view(b.dataset.view); if (shows === 'explore') predict(); };
  window.addEventListener('hashchange', () => { if (isSetup()) restore(); });
  let resized = 0, width = innerWidth;
  window.addEventListener('resize', () => {
    clearTimeout(resized);
    if (innerWidth !== width) resized = setTimeout(() => { width = innerWidth; redraw(); }, PAUSE_MS);
  });
  new IntersectionObserver(([e]) => $('brief').classList.toggle('needed', !e.isIntersecting)).observe($('answer'));
  restore();
  fillLists();
  list('measured').then((a) => {
    serviceRuns = a.rows || [];
    $('health-tab').hidden = !serviceRuns.length;
    if (serviceRuns.length) redraw();
  }).catch(() => {});
}
start();
