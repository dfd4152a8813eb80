// The corruption check of an attestation: it fetches the envelope, the key, the event and its
// proof, and computes again what the ledger and its log say of them. The host serves this
// script, so it finds corruption and mistakes, but not a host that deceives.

const box = document.getElementById('corruption-check');
const facts = box.dataset;
const {
  Failed, Unknown, fromBase64, fromHex, hex, isSupported, join, pae, sha256, toBase64, utf8, utf8Strict, verify, verifyEd,
} = await import(facts.signature);

// The forms of what is fetched.

function parseObject(bytes, what) {
  let value;
  try {
    value = JSON.parse(utf8Strict.decode(bytes));
  } catch {
    // not JSON
  }
  if (value === null || typeof value !== 'object') throw new Failed(`${what} is not a JSON object.`);
  return value;
}

// parseEnvelope reads a DSSE envelope, or a Sigstore bundle with one.
function parseEnvelope(bytes) {
  const document = parseObject(bytes, 'The envelope'), dsse = document.dsseEnvelope ?? document;
  const type = dsse.payloadType, signature = dsse.signatures?.[0]?.sig;
  if (typeof type !== 'string' || typeof dsse.payload !== 'string' || typeof signature !== 'string') {
    throw new Failed('The envelope has no payload with a signature.');
  }
  return { type, payload: fromBase64(dsse.payload, 'The payload', true), signature: fromBase64(signature, 'The signature', true) };
}

function parseKey(bytes) {
  const match = /^-----BEGIN PUBLIC KEY-----\s+([A-Za-z0-9+/=\s]+)-----END PUBLIC KEY-----\s*$/.exec(new TextDecoder().decode(bytes));
  if (!match) throw new Failed('The key is not a public key in PEM.');
  return fromBase64(match[1].replace(/\s/g, ''), 'The key');
}

function number(text, what) {
  if (!/^(0|[1-9][0-9]{0,18})$/.test(text ?? '')) throw new Failed(`${what} is not a number.`);
  return BigInt(text);
}

const hashOf = (text, what) => {
  const hash = fromBase64(text, what);
  if (hash.length !== 32) throw new Failed(`${what} is not a SHA-256.`);
  return hash;
};

// parseProof reads a proof (C2SP tlog-proof), and the opening of the leaf in it.
function parseProof(bytes) {
  let text;
  try {
    text = utf8Strict.decode(bytes);
  } catch {
    throw new Failed('The proof is not text.');
  }
  const end = text.indexOf('\n\n'), lines = text.slice(0, Math.max(0, end)).split('\n');
  if (lines[0] !== 'c2sp.org/tlog-proof@v1' || !lines[1]?.startsWith('extra ') || !lines[2]?.startsWith('index ')) {
    throw new Failed('The proof does not begin with its header, the leaf and the index.');
  }

  const opening = parseObject(fromBase64(lines[1].slice(6), 'The line extra'), 'The line extra of the proof');
  if (typeof opening.record !== 'string') throw new Failed('The proof has no record of the leaf.');
  return {
    record: opening.record, salt: opening.salt, index: number(lines[2].slice(6), 'The index'),
    path: lines.slice(3).map((line, i) => hashOf(line, `Hash ${i + 1} of the path`)), checkpoint: text.slice(end + 2),
  };
}

// parseCheckpoint reads a signed checkpoint (C2SP tlog-checkpoint).
function parseCheckpoint(note) {
  const end = note.indexOf('\n\n'), [origin, size, root, ...more] = note.slice(0, Math.max(0, end)).split('\n');
  if (end < 0 || more.length) throw new Failed('The checkpoint is not an origin, a size and a root with signatures.');
  return {
    origin, size: number(size, 'The size of the checkpoint'), root: hashOf(root ?? '', 'The root of the checkpoint'),
    text: note.slice(0, end + 1), signatures: note.slice(end + 2).split('\n'),
  };
}

// rootOf returns the root of the tree of size leaves that has a leaf at an index, as its path
// says (RFC 9162, section 2.1.3.2).
async function rootOf(leaf, index, size, path) {
  if (index >= size) throw new Failed(`The log has ${size} leaves, and none with number ${index}.`);
  let node = leaf, at = index, last = size - 1n;
  for (const hash of path) {
    if (last === 0n) throw new Failed('The path is too long.');
    if (at & 1n || at === last) {
      node = await sha256([1], hash, node);
      while (!(at & 1n) && at !== 0n) [at, last] = [at >> 1n, last >> 1n];
    } else {
      node = await sha256([1], node, hash);
    }
    [at, last] = [at >> 1n, last >> 1n];
  }
  if (last !== 0n) throw new Failed('The path is too short.');
  return node;
}

// The steps. Each gets the fetched parts and shows values.

const clip = (text) => text.length > 80 ? text.slice(0, 80) + '…' : text;
const mustBe = (got, want, problem) => { if (got !== want) throw new Failed(problem); };

async function checkPayload(parts, show) {
  const payload = facts.commitObject ? await parts.envelope : (await parts.parsed).payload;
  const computed = 'sha256:' + hex(await sha256(payload));
  show('Payload', `${payload.length} bytes`);
  show('Computed', computed);
  show('Recorded', facts.payloadDigest);
  mustBe(computed, facts.payloadDigest, 'The payload is not the one that was recorded.');
}

async function checkKey(parts, show) {
  if (!facts.key) throw new Unknown('The ledger has not recorded which key verified this attestation.');
  const computed = hex(await sha256(await parts.spki));
  show('Computed', computed);
  show('Recorded', facts.key);
  mustBe(computed, facts.key, 'The key is not the one that was recorded.');
}

async function checkSignature(parts, show) {
  if (facts.commitObject) throw new Unknown('A browser cannot check the SSH signature in a commit object: use git verify-commit.');
  const { type, payload, signature } = await parts.parsed;
  const message = pae(type, payload);
  show('Signed', `${message.length} bytes: DSSEv1, the type ${clip(type)} and the payload`);
  show('Signature', toBase64(signature.slice(0, 1024)));
  const algorithm = await verify(await parts.spki, message, signature);
  if (!algorithm) throw new Failed('The signature does not match the payload and the key.');
  show('Algorithm', algorithm);
}

async function checkEvent(parts, show) {
  const event = await parts.event;
  show('Event', clip(String(event.id)));
  const want = {
    id: facts.event, type: 'attestation', org: facts.org, repo: facts.repo, commit: facts.commit, attestation: facts.id,
    predicate: facts.predicate, identity: facts.identity, timestamp: facts.recordedAt, payload_digest: facts.payloadDigest,
  };
  if ('key' in event) want.key = facts.key; // older events have neither key nor envelope_digest
  if ('envelope_digest' in event) {
    want.envelope_digest = 'sha256:' + hex(await sha256(await parts.envelope));
    show('Envelope', want.envelope_digest);
  }
  if (facts.assertionDigest !== undefined) want.assertion_digest = facts.assertionDigest || undefined;
  mustBe(event.result?.status, facts.status, `The event has the result ${clip(String(event.result?.status))}, not ${facts.status}.`);
  const plain = (value) => typeof value === 'string' ? value.replace(/^sha256:/, '') : value;
  for (const [name, value] of Object.entries(want)) {
    mustBe(plain(event[name]), plain(value), `The event has ${name} ${clip(JSON.stringify(event[name]) ?? 'missing')}, not ${clip(JSON.stringify(value) ?? 'missing')}.`);
  }
}

// checkAssertion is a step if a passkey has confirmed the attestation.
async function checkAssertion(parts, show) {
  const assertion = await parts.assertion, computed = 'sha256:' + hex(await sha256(assertion));
  show('Assertion', `${assertion.length} bytes`);
  show('Computed', computed);
  show('Recorded', facts.assertionDigest);
  mustBe(computed, facts.assertionDigest, 'The assertion of the passkey is not the one that was recorded.');
}

async function checkLeaf(parts, show) {
  const { record, salt } = await parts.proof;
  show('Record', clip(record.slice(0, 300)).length < record.length ? record.slice(0, 300) : record);
  if (salt === undefined) {
    await parts.body.catch(() => { throw new Unknown('The log has no salt for this event: its body was pruned.'); });
    throw new Failed('The server shows the event, and its proof has nothing to compare it with.');
  }
  const body = await parts.body, computed = hex(await sha256(utf8.encode('ledgerd/leaf/v1\0'), fromHex(String(salt), 16, 'The salt'), body));
  show('Salt', salt);
  show('Computed', computed);
  const leaf = parseObject(utf8.encode(record), 'The record of the leaf');
  mustBe(leaf.hash, computed, 'The event is not the one that the leaf commits to.');
  mustBe(leaf.event, facts.event, 'The leaf is that of another event.');
  mustBe(leaf.type, 'attestation', 'The leaf has another type than the event.');
}

async function checkInclusion(parts, show) {
  const { record, index, path } = await parts.proof, { size, root } = await parts.checkpoint;
  if (path.length > 63) throw new Failed('The path is too long.');
  const leaf = await sha256([0], utf8.encode(record));
  show('Leaf', toBase64(leaf));
  show('Place', `number ${index} of ${size}, ${path.length} hashes up to the root`);
  const computed = toBase64(await rootOf(leaf, index, size, path));
  show('Computed', computed);
  show('Checkpoint', toBase64(root));
  mustBe(computed, toBase64(root), 'The path does not lead to the root of the checkpoint.');
}

async function checkCheckpoint(parts, show) {
  const { origin, size, text, signatures } = await parts.checkpoint;
  show('Log', clip(origin));
  show('Size', String(size));
  const [, name, id, encoded] = /^([^+\s]+)\+([0-9a-f]{8})\+(\S+)$/.exec(facts.logKey ?? '') ?? [];
  if (!name) throw new Unknown('The server has shown no key of the log.');
  if (origin !== name) {
    const epoch = (text) => text.replace(/\/[0-9]+$/, '');
    if (epoch(origin) === epoch(name)) throw new Unknown('The event is in an earlier epoch of the log, which had another key.');
    throw new Failed(`The checkpoint is that of another log than ${name}.`);
  }

  const key = fromBase64(encoded, 'The key of the log');
  if (key[0] !== 1 || key.length !== 33) throw new Unknown('The key of the log is not an Ed25519 key.');
  mustBe(hex((await sha256(utf8.encode(name + '\n'), key)).slice(0, 4)), id, 'The key of the log does not have the ID in its name.');
  show('Key', facts.logKey);
  for (const line of signatures) {
    if (!line.startsWith(`— ${name} `)) continue;
    const signature = fromBase64(line.slice(name.length + 3), 'The signature of the log');
    if (hex(signature.slice(0, 4)) !== id) continue;
    if (await verifyEd(key.slice(1), utf8.encode(text), signature.slice(4)) === 'Ed25519') return;
    throw new Failed('The log has not signed this checkpoint.');
  }
  throw new Failed('The checkpoint has no signature of the log.');
}

const steps = [
  ['Payload', 'The digest of what was signed is the recorded one.', checkPayload],
  ['Key', 'The fingerprint of the key is the recorded one.', checkKey],
  ['Signature', 'The key has signed the payload.', checkSignature],
  ['Event', 'The event of the attestation says the same.', checkEvent],
  ['Leaf', 'The hash of salt and event is in the leaf.', checkLeaf],
  ['Inclusion', 'The path from the leaf leads to the root of the checkpoint.', checkInclusion],
  ['Checkpoint', 'The log has signed the checkpoint.', checkCheckpoint],
];
if (facts.assertionDigest) {
  steps.splice(3, 0, ['Passkey', 'The digest of what the passkey has confirmed is the recorded one.', checkAssertion]);
}

// fetchPart returns the bytes of a part.
async function fetchPart(name) {
  let response;
  try {
    response = await fetch(`${facts.at}/${name}`, { cache: 'no-store' });
  } catch {
    throw new Unknown(`The server cannot be reached for the ${name}. Try again.`);
  }
  if (response.redirected) throw new Unknown('The session has ended: sign in again.');
  if (response.status === 409) throw new Unknown('No checkpoint of the log covers the event yet. Try again in some seconds.');
  if (!response.ok) throw new Unknown(`The server does not return the ${name} (status ${response.status}).`);
  return new Uint8Array(await response.arrayBuffer());
}

// fetchAll fetches and parses all parts, each once. A part that a step does not need may fail.
function fetchAll() {
  const envelope = fetchPart('envelope'), body = fetchPart('event'), proof = fetchPart('proof').then(parseProof);
  const parts = {
    envelope, body, proof,
    parsed: envelope.then((bytes) => facts.commitObject ? null : parseEnvelope(bytes)),
    spki: fetchPart('key').then(parseKey),
    event: body.then((bytes) => parseObject(bytes, 'The event')),
    checkpoint: proof.then(({ checkpoint }) => parseCheckpoint(checkpoint)),
  };
  if (facts.assertionDigest) parts.assertion = fetchPart('assertion');
  for (const part of Object.values(parts)) part.catch(() => {});
  return parts;
}

// The page.

const element = (name, className, ...content) => {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...content);
  return made;
};

const outcomes = { passed: 'r-pass', failed: 'r-fail', 'not checked': 'r-skip' };

// run runs one step and shows it. It returns the outcome.
async function run([title, claim, check], parts, list, shown) {
  const values = element('dl', 'facts small');
  const show = (name, value) => values.append(element('dt', '', name), element('dd', '', element('code', '', value)));
  let outcome = 'passed', reason = '';
  try {
    await check(parts, show);
  } catch (error) {
    outcome = error instanceof Failed && !shown.has(error) ? 'failed' : 'not checked';
    reason = shown.has(error) ? 'See above.' : error.message;
    if (!(error instanceof Failed || error instanceof Unknown)) reason = `This browser reports: ${error.message}`;
    shown.add(error);
  }

  const item = element('li', '', element('strong', '', title),
    element('span', 'status ' + outcomes[outcome], outcome), element('p', 'small faint', claim));
  if (reason) item.append(element('p', 'reason' + (outcome === 'failed' ? ' bad' : ''), reason));
  if (values.children.length) item.append(values);
  list.append(item);
  return outcome;
}

async function runAll() {
  if (!isSupported) return [['not checked', 'This browser offers its cryptography only over https and on localhost. Use the commands below.']];
  const list = element('ol', 'rows checked'), parts = fetchAll(), shown = new Set();
  result.after(list);
  const all = [];
  for (const step of steps) all.push([await run(step, parts, list, shown), step[0]]);
  return all;
}

const button = box.querySelector('button'), result = box.querySelector('[role=status]');
button.addEventListener('click', async () => {
  button.disabled = true;
  box.querySelector('.checked')?.remove();
  result.className = '';
  result.textContent = 'Checking…';
  const all = await runAll(), failed = all.filter(([outcome]) => outcome === 'failed').map(([, title]) => title);
  const open = all.filter(([outcome]) => outcome === 'not checked').map(([, title]) => title);

  let text = `All ${all.length} steps passed: nothing is corrupted.`;
  if (failed.length) text = `Corrupted. Failed: ${failed.join(', ')}.`;
  else if (all.length === 1) text = open[0];
  else if (open.length) text = `Incomplete. Nothing failed, but not checked: ${open.join(', ')}.`;
  result.className = 'notice ' + (failed.length ? 'bad' : open.length ? '' : 'good');
  result.textContent = text;
  button.disabled = false;
});
button.hidden = false;
