// Signatures and digests with WebCrypto, in the forms that the ledger accepts, and requests that
// change something. Loaded by check.js, review.js and passkeys.js.

const subtle = globalThis.crypto?.subtle; // only over https and on localhost
export const isSupported = Boolean(subtle);
export const utf8 = new TextEncoder();
export const utf8Strict = new TextDecoder('utf-8', { fatal: true });

// A step throws Failed if it finds something wrong, and Unknown if it cannot tell.
export class Failed extends Error {}
export class Unknown extends Error {}

// Bytes.

export const hex = (bytes) => Array.from(bytes, (b) => b.toString(16).padStart(2, '0')).join('');
const same = (a, b) => a.length === b.length && a.every((value, i) => value === b[i]);

export function join(...parts) {
  const all = new Uint8Array(parts.reduce((n, part) => n + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

export function fromHex(text, size, what) {
  if (text.length !== 2 * size || !/^[0-9a-f]*$/.test(text)) throw new Failed(`${what} is not ${size} bytes in hex.`);
  return Uint8Array.from(text.match(/../g), (pair) => parseInt(pair, 16));
}

// fromBase64 decodes base64 in its canonical form; loosely, in all forms that DSSE allows.
export function fromBase64(text, what, loosely = false) {
  const standard = loosely ? text.replaceAll('-', '+').replaceAll('_', '/').replace(/=+$/, '') : text;
  try {
    const decoded = atob(standard);
    if (loosely || btoa(decoded) === text) return Uint8Array.from(decoded, (c) => c.charCodeAt(0));
  } catch {
    // not base64
  }
  throw new Failed(`${what} is not base64.`);
}

export const toBase64 = (bytes) => btoa(String.fromCharCode(...bytes)); // of few bytes
const digest = async (name, ...parts) => new Uint8Array(await subtle.digest(name, join(...parts)));
export const sha256 = (...parts) => digest('SHA-256', ...parts);

// Ed25519 (RFC 8032), for browsers that do not have it, and for Ed25519ph, which cosign
// writes and no browser has. It only verifies, so its time may depend on its input.

const P = 2n ** 255n - 19n, L = 2n ** 252n + 27742317777372353535851937790883648493n;
const mod = (a) => { const r = a % P; return r < 0n ? r + P : r; };

function power(base, exponent) {
  let result = 1n;
  for (let b = mod(base), e = exponent; e > 0n; e >>= 1n, b = mod(b * b)) if (e & 1n) result = mod(result * b);
  return result;
}

const D = mod(-121665n * power(121666n, P - 2n));
const littleEndian = (bytes) => BigInt('0x' + hex(bytes.toReversed()));

// A point is [X, Y, Z, T] with x = X/Z, y = Y/Z and xy = T/Z.
function add([x1, y1, z1, t1], [x2, y2, z2, t2]) {
  const a = mod((y1 - x1) * (y2 - x2)), b = mod((y1 + x1) * (y2 + x2)), c = mod(2n * D * t1 * t2), d = mod(2n * z1 * z2);
  const e = b - a, f = d - c, g = d + c, h = b + a;
  return [mod(e * f), mod(g * h), mod(f * g), mod(e * h)];
}

function multiply(scalar, point) {
  let result = [0n, 1n, 1n, 0n];
  for (let p = point, s = scalar; s > 0n; s >>= 1n, p = add(p, p)) if (s & 1n) result = add(result, p);
  return result;
}

// pointOf decodes a point. It returns null if the bytes are none.
function pointOf(bytes) {
  const all = littleEndian(bytes), sign = all >> 255n, y = mod(all & (2n ** 255n - 1n));
  const u = mod(y * y - 1n), v = mod(D * y * y + 1n);
  let x = mod(u * v ** 3n * power(u * v ** 7n, (P - 5n) / 8n));
  if (mod(v * x * x) === mod(-u)) x = mod(x * power(2n, (P - 1n) / 4n));
  if (mod(v * x * x) !== u || (x === 0n && sign)) return null;
  if ((x & 1n) !== sign) x = P - x;
  return [x, y, 1n, mod(x * y)];
}

async function verifyEd25519(key, message, signature, prehashed) {
  const r = signature.slice(0, 32), s = littleEndian(signature.slice(32)), a = pointOf(key);
  if (!a || s >= L) return false;
  const domain = prehashed ? join(utf8.encode('SigEd25519 no Ed25519 collisions'), new Uint8Array([1, 0])) : new Uint8Array();
  const text = prehashed ? await digest('SHA-512', message) : message;
  const k = littleEndian(await digest('SHA-512', domain, r, key, text)) % L;

  const base = pointOf(join(new Uint8Array([0x58]), new Uint8Array(31).fill(0x66)));
  const [x, y, z] = add(multiply(s, base), multiply(k, [mod(-a[0]), a[1], 1n, mod(-a[3])]));
  const inverse = power(z, P - 2n), affineX = mod(x * inverse), affineY = mod(y * inverse);
  return littleEndian(r) === (affineY | (affineX & 1n) << 255n);
}

// Signatures.

// pae returns what DSSE signs: the payload with its type.
export const pae = (type, payload) => join(utf8.encode(`DSSEv1 ${utf8.encode(type).length} ${type} ${payload.length} `), payload);

// derOf returns an ECDSA signature in DER. WebCrypto makes it as two numbers of equal size.
export function derOf(raw) {
  const half = raw.length / 2;
  const parts = [raw.slice(0, half), raw.slice(half)].map((number) => {
    const first = number.findIndex((byte) => byte !== 0), short = number.slice(first < 0 ? half - 1 : first);
    const value = short[0] & 0x80 ? join(Uint8Array.of(0), short) : short; // a number, not a negative one
    return join(Uint8Array.of(0x02, value.length), value);
  });
  const body = join(...parts);
  return join(Uint8Array.of(0x30, body.length), body); // of P-256, it is shorter than 128 bytes
}

// integers returns the two integers of an ECDSA signature in DER, each with size bytes, or
// null if it is not in DER.
function integers(der, size) {
  let at = 0;
  const header = (tag) => {
    if (der[at++] !== tag) return -1;
    const length = der[at++];
    return length === 0x81 ? der[at++] : length > 0x80 ? -1 : length;
  };
  if (header(0x30) !== der.length - at) return null;

  const raw = new Uint8Array(2 * size);
  for (const end of [size, 2 * size]) {
    const length = header(0x02);
    if (!(length > 0)) return null;
    const value = der.slice(at, at + length);
    const trimmed = value[0] === 0 ? value.slice(1) : value;
    if (value.length !== length || trimmed.length > size) return null;
    raw.set(trimmed, end - trimmed.length);
    at += length;
  }
  return at === der.length ? raw : null;
}

// curves are the kinds of ECDSA keys, by the end of the algorithm in the key.
const curves = {
  '06082a8648ce3d030107': { name: 'P-256', size: 32, hash: 'SHA-256' },
  '06052b81040022': { name: 'P-384', size: 48, hash: 'SHA-384' },
  '06052b81040023': { name: 'P-521', size: 66, hash: 'SHA-512' },
};

const supported = async (making, what) => {
  try {
    return await making;
  } catch (error) {
    if (error.name === 'NotSupportedError') throw new Unknown(`Not supported by this browser: ${what}. Use the commands below.`);
    throw new Failed(`The key is not a valid ${what} key.`);
  }
};

async function verifyECDSA(curve, spki, message, signature) {
  const key = await supported(subtle.importKey('spki', spki, { name: 'ECDSA', namedCurve: curve.name }, false, ['verify']),
    'ECDSA ' + curve.name);
  const forms = [integers(signature, curve.size), signature.length === 2 * curve.size ? signature : null];
  for (const hash of new Set([curve.hash, 'SHA-256'])) {
    for (const raw of forms) {
      if (raw && await subtle.verify({ name: 'ECDSA', hash }, key, raw, message)) return `ECDSA ${curve.name} with ${hash}`;
    }
  }
  return '';
}

async function verifyRSA(spki, message, signature) {
  const keyFor = (name) => supported(subtle.importKey('spki', spki, { name, hash: 'SHA-256' }, false, ['verify']), 'RSA');
  if (await subtle.verify('RSASSA-PKCS1-v1_5', await keyFor('RSASSA-PKCS1-v1_5'), signature, message)) {
    return 'RSA PKCS #1 v1.5 with SHA-256';
  }
  const key = await keyFor('RSA-PSS');
  const longest = key.algorithm.modulusLength / 8 - 34;
  for (const saltLength of new Set([32, longest, ...Array(longest).keys()])) { // a signature does not say its length
    if (await subtle.verify({ name: 'RSA-PSS', saltLength }, key, signature, message)) return 'RSA-PSS with SHA-256';
  }
  return '';
}

export async function verifyEd(point, message, signature) {
  if (signature.length !== 64) return '';
  let plain;
  try {
    const key = await subtle.importKey('raw', point, 'Ed25519', false, ['verify']);
    plain = await subtle.verify('Ed25519', key, signature, message);
  } catch {
    plain = await verifyEd25519(point, message, signature, false);
  }
  if (plain) return 'Ed25519';
  return await verifyEd25519(point, message, signature, true) ? 'Ed25519ph' : '';
}

// verify returns the name of the algorithm with which a key has signed a message, or '' if
// it has not.
export async function verify(spki, message, signature) {
  const head = hex(spki.slice(0, 30));
  if (head.startsWith('302a300506032b6570032100') && spki.length === 44) return verifyEd(spki.slice(12), message, signature);
  if (head.includes('06092a864886f70d010101')) return verifyRSA(spki, message, signature);
  for (const [oid, curve] of Object.entries(curves)) {
    if (head.includes('06072a8648ce3d0201' + oid)) return verifyECDSA(curve, spki, message, signature);
  }
  throw new Failed('The key is of no kind that the ledger accepts.');
}

// Requests.

// SignInAgain means that the server asks the person to sign in again.
export class SignInAgain extends Failed {}

// send posts fields, and returns the answer.
export async function send(path, fields) {
  let response;
  try {
    response = await fetch(path, { method: 'POST', body: new URLSearchParams(fields), cache: 'no-store' });
  } catch {
    throw new Failed('The server cannot be reached. Nothing was recorded as far as this page knows: reload it to see.');
  }
  if (response.redirected) throw new SignInAgain('The session has ended.');
  const answer = await response.json().catch(() => null);
  if (answer?.code === 'sign_in_again') throw new SignInAgain(`Not recorded: ${answer.detail}.`);
  if (!response.ok || !answer) throw new Failed(`Not recorded: ${answer?.detail ?? `the server answers with status ${response.status}`}.`);
  return answer;
}

// messageOf returns what a page says of an error.
export const messageOf = (error) => error instanceof Failed ? error.message : `This browser reports: ${error.message}`;
