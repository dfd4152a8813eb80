#!/usr/bin/env node
// Verify a receipt of ledgerd: the signed statement that a commit had reached a state.
//
//   node receipt.mjs receipt.json --log-key VKEY --org acme --repo api --commit SHA --state PROMOTABLE
//
// VKEY is the key of the org's log (ledgerd shows it as "key" of GET /v1/orgs/acme/log). Get it from
// a source that you trust, once, and keep it. --key pins the key of receipts (a PEM file) too.
//
// A receipt says what the ledger decided at a time, not that it would decide the same now.
// Only Node.js 18.3 or later is needed. Exit status: 0 valid, 4 not valid, 2 wrong usage.
import { createHash, createPublicKey, verify as verifySignature } from "node:crypto"
import { readFileSync, realpathSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { isDeepStrictEqual, parseArgs } from "node:util"

const allStates = ["DRAFT", "VALIDATING", "ATTESTED", "PROMOTABLE", "DEPLOYED"]
const states = allStates.slice(2) // those that receipts are for
const statementType = "https://in-toto.io/Statement/v1"
const predicateType = "https://in-toto.io/attestation/svr/v0.2"
const payloadType = "application/vnd.in-toto+json"
const maxValidity = 7 * 24 * 3600 * 1000 // milliseconds
const clockSkew = 5 * 60 * 1000
const maxFile = 8 << 20
const maxEvidence = 200
const maxPath = 63

class Invalid extends Error {}

function need(condition, message) {
  if (!condition) throw new Invalid(message)
}

// Forms. Each accepts only the one form that ledgerd writes.

function unbase64(text) {
  const data = Buffer.from(String(text), "base64")
  need(data.toString("base64") === text, "it is not canonical base64")
  return data
}

const utf8 = (data) => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(data)

// canonical parses JSON without blanks, duplicate members, or escapes that are not needed.
function canonical(text, what) {
  const value = JSON.parse(text)
  need(JSON.stringify(value) === text, `${what}: it is not in the form that ledgerd writes`)
  return value
}

function members(value, what, required, optional = []) {
  need(value !== null && typeof value === "object" && !Array.isArray(value), `${what}: want an object`)
  const names = Object.keys(value)
  need(required.every((name) => names.includes(name)), `${what}: want the members ${required.join(", ")}`)
  need(names.every((name) => required.includes(name) || optional.includes(name)), `${what}: unknown member`)
  return value
}

function milliseconds(text) {
  const at = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(text) ? Date.parse(text) : NaN
  need(at > 0 && new Date(at).toISOString() === text, `${text} is not a time`)
  return at
}

const isHex = (text, length = 64) => typeof text === "string" && text.length === length && /^[0-9a-f]*$/.test(text)

function sha256(...parts) {
  const hash = createHash("sha256")
  parts.forEach((part) => hash.update(part))
  return hash.digest()
}

// The key of receipts: ECDSA on P-256, whose DER form always begins with the same bytes.

const p256Prefix = "3059301306072a8648ce3d020106082a8648ce3d03010703420004"

// receiptKey returns the DER form of a public key in PEM.
function receiptKey(pem) {
  const match = /^-----BEGIN PUBLIC KEY-----\n([A-Za-z0-9+/=\n]+)\n-----END PUBLIC KEY-----\n$/.exec(pem)
  need(match, "want one public key in PEM (PUBLIC KEY)")
  const der = unbase64(match[1].replaceAll("\n", ""))
  need(der.length === 91 && der.toString("hex").startsWith(p256Prefix),
    "the key of receipts must be an ECDSA key on P-256")
  return der
}

// The log: C2SP signed-note, tlog-checkpoint and tlog-proof, with hashes of RFC 6962.

const ed25519Prefix = Buffer.from("302a300506032b6570032100", "hex") // of a key in DER

// logKey parses a verifier key.
function logKey(vkey) {
  const match = /^([^\s+]+)\+([0-9a-f]{8})\+(.+)$/.exec(vkey.trim())
  need(match, "the key of the log is not a verifier key")
  const [, origin, id, text] = match
  const key = unbase64(text)
  need(key.length === 33 && key[0] === 1, "the key of the log is not an Ed25519 verifier key")
  need(sha256(`${origin}\n`, key).toString("hex", 0, 4) === id, "the key of the log has a wrong ID")
  const der = Buffer.concat([ed25519Prefix, key.subarray(1)])
  return { origin, id, key: createPublicKey({ key: der, format: "der", type: "spki" }) }
}

// openCheckpoint verifies the log's signature of a checkpoint, and returns size and root hash.
function openCheckpoint(text, origin, logKeys) {
  const end = text.lastIndexOf("\n\n")
  need(end >= 0 && text.endsWith("\n"), "the checkpoint has no signatures")
  const body = text.slice(0, end + 1)
  let verified = false
  for (const line of text.slice(end + 2, -1).split("\n")) {
    const match = /^— (\S+) ([A-Za-z0-9+/=]+)$/.exec(line)
    need(match, "the checkpoint has a malformed signature")
    const sig = unbase64(match[2])
    for (const k of logKeys) {
      if (k.origin !== origin || match[1] !== origin || sig.toString("hex", 0, 4) !== k.id) continue
      need(verifySignature(null, Buffer.from(body), k.key, sig.subarray(4)),
        "the signature of the checkpoint is not valid")
      verified = true
    }
  }
  need(verified, `no trusted key of the log ${origin} has signed the checkpoint`)

  const match = /^(.+)\n(0|[1-9]\d{0,15})\n([A-Za-z0-9+/=]+)\n$/.exec(body)
  need(match && match[1] === origin, `the checkpoint is not of the log ${origin}`)
  return { size: BigInt(match[2]), root: unbase64(match[3]) }
}

// openProof verifies that an event is in the log, and returns its index, its leaf and the
// salt of its body.
function openProof(text, origin, logKeys) {
  const end = text.indexOf("\n\n")
  const [header, extraLine, indexLine, ...path] = text.slice(0, Math.max(end, 0)).split("\n")
  need(header === "c2sp.org/tlog-proof@v1" && path.length <= maxPath, "it is not a tlog-proof")
  const extra = /^extra (.+)$/.exec(extraLine)
  const number = /^index (0|[1-9]\d{0,15})$/.exec(indexLine)
  need(extra && number, "want the lines 'extra …' and 'index …' in the proof")

  const opening = members(canonical(utf8(unbase64(extra[1])), "extra"), "extra", ["record"], ["salt"])
  const record = canonical(opening.record, "the leaf")
  need(isDeepStrictEqual(Object.keys(record), ["at", "event", "hash", "type"]) && isHex(record.hash),
    "the leaf is malformed")
  need(!("salt" in opening) || isHex(opening.salt, 32), "the salt is not 16 hex bytes")

  const { size, root } = openCheckpoint(text.slice(end + 2), origin, logKeys)
  const index = BigInt(number[1])
  need(index < size, "the checkpoint does not cover the event")
  const leaf = sha256("\0", opening.record)
  need(rootOf(leaf, index, size, path).equals(root), "the path of the proof does not lead to the checkpoint's root")
  return { index, ...record, leafHash: leaf.toString("hex"), salt: Buffer.from(opening.salt ?? "", "hex") }
}

// rootOf returns the root to which the path of a leaf leads (RFC 9162, section 2.1.3.2).
function rootOf(leaf, index, size, path) {
  let [node, fn, sn] = [leaf, index, size - 1n]
  for (const line of path) {
    const sibling = unbase64(line)
    need(sibling.length === 32 && sn > 0n, "the path of the proof is malformed")
    if (fn & 1n || fn === sn) {
      node = sha256("\x01", sibling, node)
      while (fn && !(fn & 1n)) [fn, sn] = [fn >> 1n, sn >> 1n]
    } else {
      node = sha256("\x01", node, sibling)
    }
    ;[fn, sn] = [fn >> 1n, sn >> 1n]
  }
  need(sn === 0n, "the path of the proof is too short")
  return node
}

// The receipt.

// openEnvelope verifies the signature of the DSSE envelope, and returns the statement.
function openEnvelope(envelope, der) {
  const e = members(envelope, "envelope", ["payload", "payloadType", "signatures"])
  need(e.payloadType === payloadType, `the payloadType is not ${payloadType}`)
  need(Array.isArray(e.signatures) && e.signatures.length === 1, "want one signature")
  const { keyid, sig } = members(e.signatures[0], "signature", ["keyid", "sig"])
  need(keyid === sha256(der).toString("hex"), `the receipt is signed with another key: ${keyid}`)

  const payload = unbase64(e.payload)
  const head = `DSSEv1 ${payloadType.length} ${payloadType} ${payload.length} `
  const key = createPublicKey({ key: der, format: "der", type: "spki" })
  const signed = Buffer.concat([Buffer.from(head), payload])
  need(verifySignature("sha256", signed, { key, dsaEncoding: "der" }, unbase64(sig)),
    "the signature of the receipt is not valid")
  return canonical(utf8(payload), "payload")
}

// reached reports whether a receipt says that the commit had reached a state: the standing says what
// else is true of a deployed one.
const reached = (x, state) => state === "DEPLOYED" ? x.state === state
  : allStates.indexOf(x.standing ?? x.state) >= allStates.indexOf(state)

// readStatement checks that the fields of the statement agree, and returns what ledgerd's
// extension says.
function readStatement(statement, origin) {
  const s = members(statement, "statement", ["_type", "subject", "predicateType", "predicate"])
  const p = members(s.predicate, "predicate", ["verifier", "timeCreated", "properties", "ledgerd"])
  const x = members(p.ledgerd, "predicate.ledgerd", ["org", "repo", "commit", "state", "policyVersion", "validUntil",
    "evidence", "log"], ["standing", "target", "evidenceOmitted"])
  need(states.includes(x.state), `the state ${x.state} is not one that receipts are for`)
  need(!("standing" in x) || x.state === "DEPLOYED" && allStates.slice(0, 4).includes(x.standing),
    "the standing is malformed")
  need(isHex(x.commit, 40) || isHex(x.commit), "the commit is not a full commit ID")

  const at = origin.lastIndexOf(`/v1/orgs/${x.org}/log`)
  need(at > 0 && /^(\/([2-9]|[1-9]\d+))?$/.test(origin.slice(at + `/v1/orgs/${x.org}/log`.length)),
    `the log is not one of the org ${x.org}`)
  const scheme = String(p.verifier.id).startsWith("https://") ? "https" : "http"
  const url = `${scheme}://${origin.slice(0, at)}/v1/orgs/${x.org}`
  const digest = p.verifier.policies[0].digest.sha256
  const policy = { uri: `${url}/policies/${x.repo}?version=${x.policyVersion}`, digest: { sha256: digest } }
  for (const [what, have, want] of [
    ["type", [s._type, s.predicateType], [statementType, predicateType]],
    ["subject", s.subject, [{ name: `${x.org}/${x.repo}`, digest: { gitCommit: x.commit } }]],
    ["verifier", p.verifier, { id: `${url}#ledgerd/v1`, policies: [policy] }],
    ["properties", p.properties, states.filter((state) => reached(x, state)).map((state) => `LEDGERD_${state}`)],
  ]) {
    need(isDeepStrictEqual(have, want), `${what}: it does not agree with the rest of the receipt, want ${
      JSON.stringify(want)}`)
  }
  need(isHex(digest) && x.policyVersion > 0, "the policy is malformed")

  const isDigest = (text) => text.startsWith("sha256:") && isHex(text.slice(7))
  need(Array.isArray(x.evidence) && x.evidence.length <= maxEvidence, "the evidence is malformed")
  need(x.evidence.every((e) => isDigest(e.payloadDigest) && isDigest(e.envelopeDigest)), "the evidence has no digests")
  return { ...x, policy: `sha256:${digest}`, created: milliseconds(p.timeCreated), until: milliseconds(x.validUntil) }
}

// checkKey checks that the log announces a key of receipts, which is valid for this one.
function checkKey(announcement, der, x, logKeys) {
  const leaf = openProof(announcement.proof, x.log.origin, logKeys)
  const event = JSON.parse(announcement.event)
  need(leaf.salt.length && sha256("ledgerd/leaf/v1\0", leaf.salt, announcement.event).toString("hex") === leaf.hash,
    "the event that announces the key is not the one in the log")
  need(event.id === leaf.event && event.type === "key" && leaf.type === "key", "the event announces no key")
  need(isDeepStrictEqual([event.org, event.action, event.purpose, event.key],
    [x.org, "added", "receipt", sha256(der).toString("hex")]), "the event does not announce the key of this receipt")
  need(milliseconds(event.not_before) <= x.created, "the receipt is older than its key")
  need(!event.not_after || x.created <= milliseconds(event.not_after), "the receipt is newer than its key")
}

// verify verifies a receipt (JSON), and returns what it says. It throws an error if it is not
// valid. want has org, repo, commit, state and, if they matter, target, policy and key (the
// pinned key of receipts in PEM); logKeys are verifier keys of the log.
export function verify(text, logKeys, want, now = Date.now()) {
  need(text.length <= maxFile, "the receipt is too large")
  const receipt = members(JSON.parse(text), "receipt", ["envelope", "proof", "key"])
  members(receipt.key, "key", ["public_key", "event", "proof"])
  const keys = logKeys.map(logKey)
  const der = receiptKey(receipt.key.public_key)
  need(!want.key || receiptKey(want.key).equals(der), "the receipt is signed with a key that is not the pinned one")

  const statement = openEnvelope(receipt.envelope, der)
  const log = members(statement.predicate.ledgerd.log, "log", ["origin", "index", "event", "leafHash"])
  const x = readStatement(statement, log.origin)
  checkKey(receipt.key, der, x, keys)
  const leaf = openProof(receipt.proof, log.origin, keys)
  need(isDeepStrictEqual([leaf.index, leaf.event, leaf.leafHash], [BigInt(log.index), log.event, log.leafHash]),
    `the proof is of the event ${leaf.event}`)
  need(milliseconds(leaf.at) <= x.created, "the receipt is older than the event that it rests on")

  need(x.created <= now + clockSkew, "the receipt is from the future")
  need(now < x.until, `the receipt was valid until ${x.validUntil} (get a new one)`)
  need(x.created < x.until && x.until <= x.created + maxValidity, "validUntil is not within 7 days after timeCreated")
  const target = { have: x.target ?? "", want: want.target ?? "" }
  need(x.org === want.org && x.repo === want.repo, `the receipt is for ${x.org}/${x.repo}`)
  need(x.commit === want.commit, `the receipt is for the commit ${x.commit}`)
  need(target.have === target.want, `the receipt is for the target branch ${target.have}, not ${target.want}`)
  need(!want.policy || x.policy === want.policy, `the policy is ${x.policy}`)
  need(states.includes(want.state) && reached(x, want.state),
    `the receipt says ${x.state} (standing ${x.standing ?? x.state}), not ${want.state}`)
  return x
}

function main() {
  const usage = (message) => {
    console.error(`${message}\nusage: receipt.mjs FILE --log-key VKEY --org ORG --repo REPO --commit SHA --state STATE
       [--target BRANCH] [--policy sha256:…] [--key PEM-FILE] [--at TIME] (FILE - reads stdin)`)
    process.exit(2)
  }
  const text = { type: "string" }
  const options = { org: text, repo: text, commit: text, state: text, target: text, policy: text, key: text, at: text,
    "log-key": { type: "string", multiple: true } }
  let args
  try {
    args = parseArgs({ options, allowPositionals: true })
  } catch (e) {
    usage(e.message)
  }
  const { values: v, positionals } = args
  if (positionals.length !== 1 || !v["log-key"] || !v.org || !v.repo || !v.commit || !states.includes(v.state)) {
    usage("an argument is missing or wrong")
  }

  const receipt = readFileSync(positionals[0] === "-" ? 0 : positionals[0], "utf8")
  const key = v.key && readFileSync(v.key, "utf8")
  try {
    const x = verify(receipt, v["log-key"], { ...v, key }, v.at ? milliseconds(v.at) : undefined)
    console.log(`valid: ${x.org}/${x.repo}@${x.commit} had reached ${x.state} (valid until ${x.validUntil})`)
  } catch (e) {
    console.error(`NOT VALID: ${e instanceof Invalid ? e.message : `malformed: ${e.message}`}`)
    process.exit(4)
  }
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) main()
