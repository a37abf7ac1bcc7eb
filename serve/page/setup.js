// ---- the set-up: fields, what may stand in them, the address, the options of a request
const whole = (least, most) => ({ expects: `a whole number from ${count(least)} to ${count(most)}`,
  read: (t) => (/^\d{1,12}$/.test(t) && Number(t) >= least && Number(t) <= most ? Number(t) : undefined) });
const within = (least, most, unit) => ({ expects: `a number from ${least} to ${count(most)} (${unit})`,
  read: (t) => (/^\d{0,9}(\.\d{1,6})?$/.test(t) && t !== '' && Number(t) >= least && Number(t) <= most ? Number(t) : undefined) });
const like = (pattern, expects) => ({ expects, read: (t) => (pattern.test(t) ? t : undefined) });
const oneOf = (...values) => ({ expects: 'one of ' + values.join(', '), read: (t) => (values.includes(t) ? t : undefined) });
const NAME = like(/^[\w.:=,@+-]{1,500}$/, 'a name');
const RANKS = whole(1, 65536);
// A field is '' where the service decides.
const FIELDS = {
  system: { block: 'machine', initial: 'iris-v100', is: NAME }, nodes: { block: 'machine', initial: 8, is: whole(1, 100000) },
  inter: { block: 'machine', initial: '', is: within(0.01, 10000, 'GB/s') }, intra: { block: 'machine', initial: '', is: within(0.01, 100000, 'GB/s') },
  jitter: { block: 'machine', initial: '', is: within(0, 100, '%') }, price: { block: 'machine', initial: '', is: like(/^[\d.]+ ?[A-Za-z]{0,3}$/, 'an amount such as 24.5USD') },
  workload: { block: 'model', initial: 'resnet50', is: NAME },
  input: { block: 'data', initial: '', is: oneOf('synthetic', 'real') },
  storage: { block: 'data', initial: '', is: like(/^[\d.]+ ?[kMGT]?i?[Bb](\/s|ps)?$/, 'a rate such as 2GB/s') },
  epochs: { block: 'data', initial: '', is: whole(1, 1000000) }, tokens: { block: 'data', initial: '', is: like(/^[\d.]+ ?[kMGTBbt]?$/, 'a number such as 300B or 15T') },
  framework: { block: 'plan', initial: 'pytorch-ddp', is: NAME },
  precision: { block: 'plan', initial: '', is: oneOf('fp32', 'tf32', 'mixed', 'bf16', 'fp16', 'fp8', 'mxfp8', 'nvfp4') },
  optimizer: { block: 'plan', initial: '', is: oneOf('sgd', 'momentum', 'adam', 'lamb') },
  batch: { block: 'plan', initial: '', is: whole(1, 1e6) }, global: { block: 'plan', initial: '', is: whole(1, 1e9) },
  tp: { block: 'plan', initial: '', is: RANKS }, pp: { block: 'plan', initial: '', is: RANKS }, cp: { block: 'plan', initial: '', is: RANKS }, ep: { block: 'plan', initial: '', is: RANKS },
  zero: { block: 'plan', initial: '', is: oneOf('0', '1', '2', '3') }, recompute: { block: 'plan', initial: '', is: oneOf('none', 'selective', 'full') },
  more: { block: 'plan', initial: '', is: like(/^(\s*--[a-z][a-z-]*([ =][\w.,:+]+)?(?=\s|$))*\s*$/, 'options of dlmodel predict such as --schedule interleaved') },
};
const names = Object.keys(FIELDS), blocks = ['machine', 'model', 'data', 'plan'];
const initial = Object.fromEntries(names.map((f) => [f, FIELDS[f].initial]));
// Of two fields one is given: the other is emptied.
const EITHER = { batch: 'global', global: 'batch', epochs: 'tokens', tokens: 'epochs' };
const PRESETS = {
  machine: { 'Iris: 4 V100 a node': { system: 'iris-v100' }, 'AWS p3.16xlarge: 8 V100': { system: 'aws-p3-16xlarge', nodes: 4 }, 'DGX A100 80 GB': { system: 'dgx-a100-80' },
    'DGX H100': { system: 'dgx-h100' }, 'GB200 NVL72': { system: 'gb200-nvl72', nodes: 4 } },
  model: { 'ResNet-50': { workload: 'resnet50' }, 'ViT-B/16': { workload: 'vit_b_16' }, 'BERT large': { workload: 'bert_large' }, 'GPT-2 XL': { workload: 'gpt2_xl' },
    'Llama 3 8B': { workload: 'llama3_8b' }, 'Llama 3 70B': { workload: 'llama3_70b' }, 'Mixtral 8x7B': { workload: 'mixtral_8x7b' } },
  data: { 'Synthetic data': {}, 'Images from storage, 90 epochs': { input: 'real', epochs: 90 }, '1 T tokens': { tokens: '1T' } },
  plan: { 'PyTorch DDP': { framework: 'pytorch-ddp' }, 'Horovod with TensorFlow': { framework: 'horovod-tensorflow' }, 'PyTorch FSDP2': { framework: 'pytorch-fsdp2' },
    'DeepSpeed ZeRO 3': { framework: 'deepspeed-zero3' }, 'Megatron-Core, planned': { framework: 'megatron-core' } },
};
const QUESTIONS = ['a-workload', 'a-length', 'a-system', 'a-most', 'a-framework', 'a-deadline'];

let state = { ...initial };
let refused = {}; // field: what is wrong with the text that stands in it
const isRefused = () => Object.keys(refused).length > 0;
let own = {}; // the user's files: {system, workload, site: {name, document}, measured: {name, text, rows}}
let kept = null; // the pinned set-up: {state, rows, row}; without rows it is still to be predicted
let shows = 'explore', asked = false, planned = false; // the view; whether its questions were answered, the plans searched

function checked(field, text) {
  const { is, initial: usual } = FIELDS[field], t = String(text).trim();
  const value = t === '' && usual === '' ? '' : is.read(t);
  if (value === undefined) throw new Error(`${field}: expected ${is.expects}, got “${t.slice(0, 60)}”`);
  return value;
}

// Everything that is shown has its link: the set-up, what was pinned ("kept.nodes=2"), the view, its questions, the search.
function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1)), wrong = [];
  const plain = new Set(['kept', 'view', 'asked', 'plans', 'token', ...QUESTIONS]);
  for (const k of given.keys()) if (!plain.has(k) && !names.includes(k.replace(/^kept\./, ''))) wrong.push(`“${k.slice(0, 40)}” is not a setting`);
  const read = (prefix) => Object.fromEntries(names.map((f) => {
    try {
      return [f, given.has(prefix + f) ? checked(f, given.get(prefix + f)) : initial[f]];
    } catch (e) {
      wrong.push(e.message);
      return [f, initial[f]];
    }
  }));
  state = read('');
  kept = given.has('kept') ? { state: read('kept.') } : null;
  refused = {};
  shows = ['wizard', 'health'].includes(given.get('view')) ? given.get('view') : 'explore';
  asked = given.has('asked');
  planned = given.has('plans');
  for (const q of QUESTIONS) if (given.has(q)) setValue($(q), given.get(q));
  token = given.get('token') || token; // of a portal that starts the service for its user; writeAddress() does not repeat it
  $('address').hidden = !wrong.length;
  $('address').textContent = wrong.length ? `The address of this page has settings that were left out: ${wrong.join('; ')}.` : '';
}
function writeAddress() {
  const p = new URLSearchParams();
  const write = (prefix, s) => { for (const f of names) if (s[f] !== initial[f]) p.set(prefix + f, s[f]); };
  write('', state);
  if (kept) { p.set('kept', ''); write('kept.', kept.state); }
  if (shows !== 'explore') p.set('view', shows);
  if (shows === 'wizard') for (const q of QUESTIONS) if ($(q).value !== ($(q).defaultValue ?? '')) p.set(q, $(q).value);
  if (shows === 'wizard' && asked) p.set('asked', '');
  if (planned) p.set('plans', '');
  history.replaceState(null, '', '#' + p);
}

// ---- sliders: positions of values
const LINKS = ['', 1, 1.25, 2.5, 3, 5, 6.25, 8, 10, 12.5, 16, 25, 32, 50, 64, 100, 200, 400, 800];
const POSITIONS = { nodes: Array.from({ length: 11 }, (_, i) => 2 ** i), inter: LINKS, intra: LINKS, jitter: ['', ...Array.from({ length: 21 }, (_, i) => i)] };
const position = (f, v) => { // of the nearest value
  const all = POSITIONS[f], near = all.map((x) => (v === '' || x === '' ? (x === v ? 0 : Infinity) : Math.abs(x - v)));
  return near.indexOf(Math.min(...near));
};
const SHOWN = { nodes: (v) => count(v), inter: (v) => (v === '' ? 'unchanged' : v + ' GB/s'), intra: (v) => (v === '' ? 'unchanged' : v + ' GB/s'), jitter: (v) => (v === '' ? 'unchanged' : v + ' %') };
const GISTS = { machine: (s) => `${s.system}, ${plural(s.nodes, 'node')}`, model: (s) => s.workload,
  data: (s) => [s.input || 'synthetic', s.epochs ? plural(s.epochs, 'epoch') : s.tokens ? s.tokens + ' tokens' : ''].filter(Boolean).join(', '),
  plan: (s) => [s.framework, s.precision, s.global ? 'global batch ' + count(s.global) : s.batch ? s.batch + ' per GPU' : '', ...['tp', 'pp', 'cp', 'ep'].filter((f) => s[f]).map((f) => f + ' ' + s[f])].filter(Boolean).join(', ') };
// Also a choice whose list has not come yet.
function setValue(e, value) {
  if (e.value === value) return;
  if (e.tagName === 'SELECT' && ![...e.options].some((o) => o.value === value)) e.append(make('option', {}, value));
  e.value = value;
}
function showControls() {
  for (const f of names) {
    const e = $(f), wrong = refused[f];
    if (!wrong) setValue(e, String(state[f]));
    e.setAttribute('aria-invalid', String(Boolean(wrong)));
    e.setCustomValidity(wrong || '');
  }
  for (const f of Object.keys(POSITIONS)) {
    const slider = $(f + '-slider'), at = String(position(f, state[f]));
    if (slider.value !== at) slider.value = at;
    slider.setAttribute('aria-valuetext', SHOWN[f](state[f])); // a screen reader says what the position means
    if ($(f + '-shown')) $(f + '-shown').textContent = SHOWN[f](state[f]);
  }
  for (const b of blocks) {
    $('gist-' + b).textContent = GISTS[b](state);
    const same = Object.entries(PRESETS[b]).find(([, p]) => names.every((f) => FIELDS[f].block !== b || f === 'nodes' || state[f] === (p[f] ?? initial[f])));
    $('preset-' + b).value = same ? same[0] : '';
  }
}
function applyPreset(block, name) {
  if (!name) return;
  const given = PRESETS[block][name];
  for (const f of names) {
    if (FIELDS[f].block !== block) continue;
    if (f !== 'nodes' || given.nodes) state[f] = given[f] ?? initial[f];
    delete refused[f];
  }
  changed();
}

// ---- the options of a request, and the command line of the same
const billions = (text) => text.replace(/\s*b$/i, 'G').replace(/\s*t$/i, 'T').replace(/\s+/g, ''); // "20B"
const KEYS = { batch: 'batch_per_device', global: 'global_batch' };
const SETTINGS = { inter: (v) => ['links.inter.bandwidth', v + 'GB/s'], intra: (v) => ['links.intra.bandwidth', v + 'GB/s'], jitter: (v) => ['system.jitter_frac', v / 100],
  storage: (v) => ['storage.total_read_bytes_per_s', v.replace(' ', '')] };
function moreOptions(text) {
  const found = {};
  for (const [, name, value] of text.matchAll(/--([a-z-]+)(?:[ =](?!--)([\w.,:+]+))?/g)) found[name.replaceAll('-', '_')] = value ?? true;
  return found;
}
const ownOf = (kind, name) => (own[kind] && own[kind].name === name ? own[kind].document : name);
function options(s, extra = {}) {
  const o = {};
  for (const f of names) if (s[f] !== '' && !SETTINGS[f] && f !== 'more') o[KEYS[f] || f] = f === 'tokens' ? billions(s[f]) : f === 'price' ? s[f].replace(' ', '') : s[f];
  Object.assign(o, moreOptions(s.more), { system: ownOf('system', s.system), workload: ownOf('workload', s.workload) });
  if (own.measured) o.measured = { name: own.measured.name, text: own.measured.text };
  const set = Object.fromEntries(Object.keys(SETTINGS).filter((f) => s[f] !== '').map((f) => SETTINGS[f](s[f])));
  if (Object.keys(set).length) o.set = set;
  return { ...o, ...extra };
}
const quote = (t) => (/^[\w@%+=:,./-]+$/.test(t) ? t : "'" + String(t).replaceAll("'", "'\\''") + "'");
function commandLine(s, command = 'predict') {
  const words = ['dlmodel', command];
  for (const [k, v] of Object.entries(options(s))) {
    const option = '--' + k.replaceAll('_', '-');
    if (k === 'set') for (const [key, value] of Object.entries(v)) words.push(option, quote(key + '=' + value));
    else if (v === true) words.push(option);
    else words.push(option, quote(k === 'measured' ? v.name : typeof v === 'object' ? own[k].name + '.json' : v));
  }
  return words.join(' ');
}
// The fields that a command line of this program gives: a plan of the search, or of a script that was imported.
function fieldsOf(line) {
  const found = {}, more = [];
  const words = [...line.matchAll(/'((?:[^']|'\\'')*)'|(\S+)/g)].map((m) => m[2] ?? m[1].replaceAll("'\\''", "'"));
  for (let i = 0; i < words.length; i++) {
    if (!words[i].startsWith('--')) continue;
    const name = words[i].slice(2), value = words[i + 1] !== undefined && !words[i + 1].startsWith('--') ? words[++i] : true;
    const field = { 'batch-per-device': 'batch', 'global-batch': 'global' }[name] || name;
    if (name === 'set' || name === 'measured' || name === 'more' || value === 'local.json') continue;
    let good;
    try { good = names.includes(field) ? checked(field, value) : undefined; } catch { good = undefined; }
    if (good !== undefined) found[field] = good;
    else more.push('--' + name + (value === true ? '' : ' ' + value));
  }
  return { ...found, more: checked('more', more.join(' ')) };
}
