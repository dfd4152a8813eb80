// The review of a commit: the browser makes a key that cannot leave it, shows what the server asks
// to sign, and signs it. The server certifies the key for this one statement. The host serves this
// script, so it protects from mistakes, but not from a host that deceives: 'ledgerd review' in a
// terminal does not depend on it.

const box = document.getElementById('review');
const facts = box.dataset;
const {
  Failed, SignInAgain, derOf, fromBase64, isSupported, messageOf, pae, send, sha256, toBase64, utf8, utf8Strict,
} = await import(facts.signature);

const type = 'application/vnd.in-toto+json';
const predicateType = 'https://github.com/ledgerd/ledgerd/predicate/result/v1';
const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const verdicts = { approve: ['pass', 'Approve'], request_changes: ['fail', 'Request changes'] };

// The key. Each member has one per browser: people who share a browser do not share a key.

const settled = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

async function withKeys(mode, use) {
  const opening = indexedDB.open('ledgerd-review', 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore('keys');
  const database = await settled(opening);
  try {
    return await settled(use(database.transaction('keys', mode).objectStore('keys')));
  } finally {
    database.close();
  }
}

// keyPair returns the key of the member. If the browser has lost it or keeps none, as in a private
// window, it makes another.
async function keyPair() {
  const name = `${facts.org}/${facts.member}`;
  try {
    const kept = await withKeys('readonly', (keys) => keys.get(name));
    if (kept?.privateKey instanceof CryptoKey && kept.publicKey instanceof CryptoKey) return kept;
  } catch {
    // no storage
  }
  const made = await crypto.subtle.generateKey(algorithm, false, ['sign', 'verify']);
  try {
    await withKeys('readwrite', (keys) => keys.put(made, name));
  } catch {
    // no storage
  }
  return made;
}

// The server.

const ask = (path, fields) => send(`${facts.at}/${path}`, { member: facts.member, ...fields });

// statementOf reads the bytes to sign. It refuses them unless they say what the person has chosen
// about this commit and those since the base, and nothing else.
function statementOf(bytes, verdict, comment, base, commits) {
  const text = utf8Strict.decode(bytes), statement = JSON.parse(text), { predicate } = statement, [subject] = statement.subject;
  const { tree = '', nonce } = predicate.annotations;
  const same = (got, want) => JSON.stringify(got) === JSON.stringify(want);
  const sorted = (value) => Array.isArray(value) ? value.map(sorted) : value === null || typeof value !== 'object' ? value :
    Object.fromEntries(Object.keys(value).sort().map((name) => [name, sorted(value[name])]));

  const name = `${facts.org}/${facts.repo}`;
  const want = {
    _type: 'https://in-toto.io/Statement/v1', predicateType,
    subject: [{ name, digest: { gitCommit: facts.commit, ...(tree && { gitTree: tree }) } }],
    predicate: {
      predicate: 'review:code', result: { status: verdicts[verdict][0], duration_ms: 0 }, repo: name, ...(base && { base }),
      annotations: { nonce, ...(comment && { comment }), ...(tree && { tree }) },
    },
  };
  if (typeof nonce !== 'string' || nonce.length < 43 || !/^[0-9a-f]*$/.test(tree + base) || base && commits[0]?.sha !== facts.commit || !same(sorted(statement), sorted(want))) {
    throw new Failed('The server asks to sign something else than this review. Nothing was signed.');
  }
  const [org, repo] = predicate.repo.split('/');
  return {
    org, repo, commit: subject.digest.gitCommit, tree: tree || 'not known', nonce, payload: text,
    verdict: `${verdicts[verdict][1]} (${predicate.result.status})`, predicate: predicate.predicate,
    comment: predicate.annotations.comment ?? 'none', base: base || 'none: the review is about this commit alone',
  };
}

// element returns an element with a text.
function element(name, text) {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}

// describe puts the subject and the author of a commit into a place.
function describe(place, { subject, author }) {
  place.append(element('bdi', subject), ' (', element('bdi', author.name || author.email), ')');
}

// showScope shows which commits the review is about.
function showScope({ branch, since, commits = [] }) {
  const about = box.querySelector('[data-since]');
  about.replaceChildren();
  if (since) describe(about, since);
  if (branch) about.append(since ? ', ' : '', 'the merge base with ', element('bdi', branch));
  const list = box.querySelector('[data-commits]');
  list.hidden = commits.length === 0;
  list.replaceChildren(...commits.map((commit) => {
    const item = document.createElement('li');
    item.append(element('code', commit.sha.slice(0, 12)), ' ');
    describe(item, commit);
    return item;
  }));
}

async function sign(bytes) {
  const key = await keyPair();
  const raw = new Uint8Array(await crypto.subtle.sign(algorithm, key.privateKey, pae(type, bytes)));
  const spki = new Uint8Array(await crypto.subtle.exportKey('spki', key.publicKey));
  return { public_key: toBase64(spki), signature: toBase64(derOf(raw)) };
}

// The passkey.

// Cancelled means that the person can try again.
class Cancelled extends Failed {}

// confirmation asks a passkey to confirm the bytes. What it signs follows from them, so that the
// server cannot have anything else confirmed.
async function confirmation({ bytes, rpId, passkeys }) {
  const challenge = await sha256(utf8.encode('ledgerd/approval/v1\0'), pae(type, bytes));
  const allowCredentials = passkeys.map((id) => ({ type: 'public-key', id: fromBase64(id, 'A credential ID') }));
  let given;
  try {
    given = await navigator.credentials.get({ publicKey: { challenge, rpId, allowCredentials, userVerification: 'required' } });
  } catch (error) {
    if (error.name === 'NotAllowedError') throw new Cancelled('No passkey has confirmed it: you have cancelled it, or it took too long.');
    throw error;
  }
  const text = (buffer) => toBase64(new Uint8Array(buffer)), { response } = given;
  return JSON.stringify({
    credential_id: text(given.rawId), client_data: text(response.clientDataJSON),
    authenticator_data: text(response.authenticatorData), signature: text(response.signature),
  });
}

// The page.

const form = box.querySelector('form'), signed = box.querySelector('[data-confirm]');
const status = box.querySelector('[role=status]'), again = box.querySelector('[data-again]');
const buttons = box.querySelectorAll('button'), plain = box.querySelector('[data-sign]'), withPasskey = box.querySelector('[data-passkey]');
let draft = null; // what is shown for confirmation

function report(text, kind = '') {
  status.className = text ? `notice ${kind}` : '';
  status.textContent = text;
  again.hidden = true;
}

function show(part) {
  form.hidden = part !== form;
  signed.hidden = part !== signed;
}

// attempt runs an action while the buttons are off, and reports its error.
async function attempt(action) {
  for (const button of buttons) button.disabled = true;
  report('');
  try {
    await action();
  } catch (error) {
    if (!(error instanceof Cancelled)) {
      draft = null;
      show(form);
    }
    report(messageOf(error), 'bad');
    again.hidden = !(error instanceof SignInAgain);
  }
  for (const button of buttons) button.disabled = false;
}

form.addEventListener('submit', (event) => {
  event.preventDefault();
  const verdict = event.submitter?.value ?? 'approve', comment = form.elements.comment.value;
  attempt(async () => {
    const answer = await ask('review-draft', { verdict, comment });
    const { payload, base = '', rp_id: rpId, passkeys = [], passkey_required: required = false } = answer;
    const bytes = fromBase64(payload, 'The statement');
    const says = statementOf(bytes, verdict, comment, base, answer.commits ?? []);
    showScope(answer);
    for (const place of box.querySelectorAll('[data-signed]')) place.textContent = says[place.dataset.signed];
    draft = { payload, bytes, rpId, passkeys };
    withPasskey.hidden = passkeys.length === 0;
    plain.hidden = required;
    plain.classList.toggle('primary', withPasskey.hidden);
    show(signed);
    signed.querySelector('h3').focus();
  });
});

// record signs what is shown, and sends it.
async function record(extra = {}) {
  const { id, predicate, result } = await ask('review', { payload: draft.payload, ...await sign(draft.bytes), ...extra });
  draft = null;
  form.reset();
  show(form);
  report('Recorded: ', 'good');
  const link = document.createElement('a');
  link.href = `${facts.attestations}/${encodeURIComponent(id)}`;
  link.textContent = `${predicate} ${result.status}`;
  status.append(link);
}

plain.addEventListener('click', () => attempt(() => record()));
withPasskey.addEventListener('click', () => attempt(async () => record({ confirmation: await confirmation(draft) })));

box.querySelector('[data-cancel]').addEventListener('click', () => {
  draft = null;
  show(form);
  report('Nothing was signed.');
});

if (isSupported) show(form);
else report('This browser offers its cryptography only over https and on localhost. Use ledgerd review in a terminal.');
