#!/usr/bin/env python3
"""Verify a receipt of ledgerd: the signed statement that a commit had reached a state.

    receipt.py receipt.json --log-key VKEY --org acme --repo api --commit SHA --state PROMOTABLE

VKEY is the key of the org's log (ledgerd shows it as "key" of GET /v1/orgs/acme/log). Get it from
a source that you trust, once, and keep it. --key pins the key of receipts (a PEM file) too.

A receipt says what the ledger decided at a time, not that it would decide the same now.
Only Python 3.8 or later is needed. Exit status: 0 valid, 4 not valid, 2 wrong usage.
"""
import argparse, base64, hashlib, json, re, sys, time
from datetime import datetime, timezone

ALL_STATES = ["DRAFT", "VALIDATING", "ATTESTED", "PROMOTABLE", "DEPLOYED"]
STATES = ALL_STATES[2:]  # those that receipts are for
STATEMENT, PREDICATE = "https://in-toto.io/Statement/v1", "https://in-toto.io/attestation/svr/v0.2"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
MAX_VALIDITY, CLOCK_SKEW = 7 * 24 * 3600 * 1000, 5 * 60 * 1000  # milliseconds
MAX_FILE, MAX_EVIDENCE, MAX_PATH = 8 << 20, 200, 63

class Invalid(Exception): pass
REFUSED = (Invalid, ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError)

def need(condition, message):
    if not condition:
        raise Invalid(message)


# Forms. Each accepts only the one form that ledgerd writes.
def unbase64(text):
    data = base64.b64decode(text, validate=True)
    need(base64.b64encode(data).decode() == text, "it is not canonical base64")
    return data

def canonical(text, what):
    """Parse JSON without blanks, duplicate members, or escapes that are not needed."""
    value = json.loads(text)
    again = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    need(again == text, what + ": it is not in the form that ledgerd writes")
    return value

def members(value, what, required, optional=()):
    need(isinstance(value, dict) and set(required) <= set(value) <= {*required, *optional},
         "%s: want the members %s" % (what, ", ".join(required)))
    return [value[name] for name in required]

def milliseconds(text):
    need(re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z", text, re.A),
         "%r is not a time" % text)
    at = datetime.strptime(text[:19], "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc)
    return int(at.timestamp()) * 1000 + int(text[20:23])

def is_hex(text, length=64):
    return isinstance(text, str) and re.fullmatch("[0-9a-f]{%d}" % length, text) is not None

def sha256(*parts): return hashlib.sha256(b"".join(parts)).digest()


# Signatures: ECDSA on P-256 (FIPS 186-5), and Ed25519 (RFC 8032). Points are pairs (x, y).
def multiply(add, zero, k, point):
    total = zero
    for bit in bin(k)[2:]:
        total = add(total, total)
        if bit == "1":
            total = add(total, point)
    return total

P = 2**256 - 2**224 + 2**192 + 2**96 - 1
N = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
B = 0x5AC635D8AA3A93E7B3EBBD55769886BC651D06B0CC53B0F63BCE3C3E27D2604B
G = (0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
     0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5)
SPKI = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d030107034200")  # before 04 x y

def p256_add(a, b):
    if a is None or b is None:  # the point at infinity
        return a or b
    (x1, y1), (x2, y2) = a, b
    if x1 == x2 and y1 != y2:
        return None
    slope = (3 * x1 * x1 - 3) * pow(2 * y1, -1, P) if x1 == x2 else (y2 - y1) * pow(x2 - x1, -1, P)
    x = (slope * slope - x1 - x2) % P
    return x, (slope * (x1 - x) - y1) % P

def p256_key(pem):
    """Return the DER form and the point of a public key in PEM."""
    match = re.fullmatch(r"-----BEGIN PUBLIC KEY-----\n([A-Za-z0-9+/=\n]+)\n-----END PUBLIC KEY-----\n", pem)
    need(match, "want one public key in PEM (PUBLIC KEY)")
    der = unbase64(match.group(1).replace("\n", ""))
    need(len(der) == 91 and der[:27] == SPKI + b"\x04", "the key of receipts must be an ECDSA key on P-256")
    x, y = int.from_bytes(der[27:59], "big"), int.from_bytes(der[59:], "big")
    need(max(x, y) < P and (y * y - x * x * x + 3 * x - B) % P == 0, "the key of receipts is not on P-256")
    return der, (x, y)

def p256_verify(key, message, sig):
    r, s = int.from_bytes(sig[4:4 + sig[3]], "big"), int.from_bytes(sig[6 + sig[3]:], "big")
    need(0 < r < N and 0 < s < N, "the signature of the receipt is out of range")
    parts = [i.to_bytes(i.bit_length() // 8 + 1, "big") for i in (r, s)]
    body = b"".join(bytes([2, len(part)]) + part for part in parts)
    need(sig == bytes([0x30, len(body)]) + body, "the signature of the receipt is not in DER")
    w = pow(s, -1, N)
    u, v = int.from_bytes(sha256(message), "big") * w % N, r * w % N
    point = p256_add(multiply(p256_add, None, u, G), multiply(p256_add, None, v, key))
    need(point is not None and point[0] % N == r, "the signature of the receipt is not valid")

Q, L = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, Q) % Q

def ed25519_add(a, b):
    (x1, y1), (x2, y2) = a, b
    k = D * x1 * x2 * y1 * y2
    return (x1 * y2 + x2 * y1) * pow(1 + k, -1, Q) % Q, (y1 * y2 + x1 * x2) * pow(1 - k, -1, Q) % Q

def ed25519_point(data):
    y, sign = int.from_bytes(data, "little") % 2**255, data[31] >> 7
    square = (y * y - 1) * pow(D * y * y + 1, -1, Q) % Q
    x = pow(square, (Q + 3) // 8, Q)
    if (x * x - square) % Q:
        x = x * pow(2, (Q - 1) // 4, Q) % Q
    need((x * x - square) % Q == 0 and y < Q, "the key of the log is not an Ed25519 key")
    return (x if x % 2 == sign else Q - x), y

def ed25519_verify(key, message, sig):
    (x, y), s = ed25519_point(key), int.from_bytes(sig[32:], "little")
    if len(sig) != 64 or s >= L:
        return False
    h = int.from_bytes(hashlib.sha512(sig[:32] + key + message).digest(), "little") % L
    base = ed25519_point((4 * pow(5, -1, Q) % Q).to_bytes(32, "little"))
    x, y = ed25519_add(multiply(ed25519_add, (0, 1), s, base), multiply(ed25519_add, (0, 1), h, (Q - x, y)))
    return (y | (x & 1) << 255).to_bytes(32, "little") == sig[:32]


# The log: C2SP signed-note, tlog-checkpoint and tlog-proof, with hashes of RFC 6962.
def log_key(vkey):
    """Return origin, key ID and Ed25519 key of a verifier key."""
    origin, key_id, key = vkey.strip().split("+", 2)
    key = unbase64(key)
    need(len(key) == 33 and key[0] == 1, "the key of the log is not an Ed25519 verifier key")
    need(sha256(origin.encode(), b"\n", key)[:4].hex() == key_id, "the key of the log has a wrong ID")
    return origin, bytes.fromhex(key_id), key[1:]

def open_checkpoint(text, origin, log_keys):
    """Verify the log's signature of a checkpoint, and return size and root hash."""
    body, _, lines = text.rpartition("\n\n")
    body += "\n"
    verified = False
    need(lines.endswith("\n"), "the checkpoint has no signatures")
    for line in lines[:-1].split("\n"):
        match = re.fullmatch(r"— (\S+) ([A-Za-z0-9+/=]+)", line)
        need(match, "the checkpoint has a malformed signature")
        sig = unbase64(match.group(2))
        for name, key_id, key in log_keys:
            if name == origin == match.group(1) and sig[:4] == key_id:
                need(ed25519_verify(key, body.encode(), sig[4:]), "the signature of the checkpoint is not valid")
                verified = True
    need(verified, "no trusted key of the log %s has signed the checkpoint" % origin)
    match = re.fullmatch(r"(.+)\n(0|[1-9][0-9]{0,15})\n([A-Za-z0-9+/=]+)\n", body)
    need(match and match.group(1) == origin, "the checkpoint is not of the log " + origin)
    return int(match.group(2)), unbase64(match.group(3))

def open_proof(text, origin, log_keys):
    """Verify that an event is in the log, and return its index, its leaf and the salt of its body."""
    head, _, checkpoint = text.partition("\n\n")
    lines = head.split("\n")
    need(lines[0] == "c2sp.org/tlog-proof@v1" and len(lines) <= 3 + MAX_PATH, "it is not a tlog-proof")
    extra, index = re.fullmatch("extra (.+)", lines[1]), re.fullmatch("index (0|[1-9][0-9]{0,15})", lines[2])
    need(extra and index, "want the lines 'extra …' and 'index …' in the proof")
    opening = canonical(unbase64(extra.group(1)).decode(), "extra")
    members(opening, "extra", ["record"], ["salt"])
    record = canonical(opening["record"], "the leaf")
    need(list(record) == ["at", "event", "hash", "type"] and is_hex(record["hash"]), "the leaf is malformed")
    need("salt" not in opening or is_hex(opening["salt"], 32), "the salt is not 16 hex bytes")

    size, root = open_checkpoint(checkpoint, origin, log_keys)
    index = int(index.group(1))
    need(index < size, "the checkpoint does not cover the event")
    leaf = node = sha256(b"\x00", opening["record"].encode())
    fn, sn = index, size - 1
    for line in lines[3:]:  # RFC 9162, section 2.1.3.2
        sibling = unbase64(line)
        need(len(sibling) == 32 and sn > 0, "the path of the proof is malformed")
        if fn & 1 or fn == sn:
            node = sha256(b"\x01", sibling, node)
            while fn and not fn & 1:
                fn, sn = fn >> 1, sn >> 1
        else:
            node = sha256(b"\x01", node, sibling)
        fn, sn = fn >> 1, sn >> 1
    need(sn == 0 and node == root, "the path of the proof does not lead to the root of the checkpoint")
    return index, record, leaf.hex(), bytes.fromhex(opening.get("salt", ""))


# The receipt.
def open_envelope(envelope, der, point):
    """Verify the signature of the DSSE envelope, and return the statement."""
    payload, payload_type, signatures = members(envelope, "envelope", ["payload", "payloadType", "signatures"])
    need(payload_type == PAYLOAD_TYPE, "the payloadType is not " + PAYLOAD_TYPE)
    need(isinstance(signatures, list) and len(signatures) == 1, "want one signature")
    key_id, sig = members(signatures[0], "signature", ["keyid", "sig"])
    need(key_id == sha256(der).hex(), "the receipt is signed with another key: " + str(key_id))
    payload = unbase64(payload)
    signed = b"DSSEv1 %d %s %d %s" % (len(PAYLOAD_TYPE), PAYLOAD_TYPE.encode(), len(payload), payload)
    p256_verify(point, signed, unbase64(sig))
    return canonical(payload.decode(), "payload")

def reached(x, state):
    """Return whether a receipt says that the commit had reached a state.

    The standing says what else is true of a deployed one."""
    if state == "DEPLOYED":
        return x["state"] == state
    return ALL_STATES.index(x.get("standing", x["state"])) >= ALL_STATES.index(state)

def read_statement(statement, origin):
    """Check that the fields of the statement agree, and return what ledgerd's extension says."""
    _, subject, _, predicate = members(statement, "statement", ["_type", "subject", "predicateType", "predicate"])
    verifier, created, properties, x = members(
        predicate, "predicate", ["verifier", "timeCreated", "properties", "ledgerd"])
    members(x, "predicate.ledgerd", ["org", "repo", "commit", "state", "policyVersion", "validUntil", "evidence",
                                     "log"], ["standing", "target", "evidenceOmitted"])
    need(x["state"] in STATES, "the state %s is not one that receipts are for" % x["state"])
    need("standing" not in x or x["state"] == "DEPLOYED" and x["standing"] in ALL_STATES[:4], "the standing is malformed")
    need(is_hex(x["commit"], 40) or is_hex(x["commit"], 64), "the commit is not a full commit ID")

    prefix, _, epoch = origin.rpartition("/v1/orgs/%s/log" % x["org"])
    need(prefix and re.fullmatch("(/([2-9]|[1-9][0-9]+))?", epoch), "the log is not one of the org " + x["org"])
    scheme = "https" if str(verifier.get("id")).startswith("https://") else "http"
    url = "%s://%s/v1/orgs/%s" % (scheme, prefix, x["org"])
    digest = verifier["policies"][0]["digest"]["sha256"]
    policy = {"uri": "%s/policies/%s?version=%d" % (url, x["repo"], x["policyVersion"]), "digest": {"sha256": digest}}
    for what, have, want in [
            ("type", [statement["_type"], statement["predicateType"]], [STATEMENT, PREDICATE]),
            ("subject", subject, [{"name": x["org"] + "/" + x["repo"], "digest": {"gitCommit": x["commit"]}}]),
            ("verifier", verifier, {"id": url + "#ledgerd/v1", "policies": [policy]}),
            ("properties", properties, ["LEDGERD_" + s for s in STATES if reached(x, s)])]:
        need(have == want, "%s: %s does not agree with the rest of the receipt, want %s" % (what, have, want))
    need(is_hex(digest) and x["policyVersion"] > 0, "the policy is malformed")
    need(isinstance(x["evidence"], list) and len(x["evidence"]) <= MAX_EVIDENCE, "the evidence is malformed")
    for e in x["evidence"]:
        need(all(e[name][:7] == "sha256:" and is_hex(e[name][7:]) for name in ("payloadDigest", "envelopeDigest")),
             "the evidence has no digests")
    return x, "sha256:" + digest, milliseconds(created), milliseconds(x["validUntil"])

def verify(receipt, log_keys, org, repo, commit, state, target="", policy=None, key=None, now=None):
    """Verify a receipt (bytes of JSON), and return what it says. Raise Invalid if it is not valid.

    log_keys are verifier keys of the log; key is a pinned key of receipts in PEM; now is in milliseconds."""
    need(len(receipt) <= MAX_FILE, "the receipt is too large")
    envelope, proof, announcement = members(json.loads(receipt.decode()), "receipt", ["envelope", "proof", "key"])
    pem, event_text, event_proof = members(announcement, "key", ["public_key", "event", "proof"])
    now = int(time.time() * 1000) if now is None else now
    log_keys = [log_key(vkey) for vkey in log_keys]
    der, point = p256_key(pem)
    need(not key or p256_key(key)[0] == der, "the receipt is signed with a key that is not the pinned one")
    statement = open_envelope(envelope, der, point)
    origin, index, event, leaf_hash = members(
        statement["predicate"]["ledgerd"]["log"], "log", ["origin", "index", "event", "leafHash"])
    x, policy_digest, created, valid_until = read_statement(statement, origin)

    _, leaf, _, salt = open_proof(event_proof, origin, log_keys)  # the log announces the key
    e = json.loads(event_text)
    need(salt and sha256(b"ledgerd/leaf/v1\0", salt, event_text.encode()).hex() == leaf["hash"],
         "the event that announces the key is not the one in the log")
    need([e["id"], e["type"], leaf["type"]] == [leaf["event"], "key", "key"], "the event announces no key")
    need([e["org"], e["action"], e["purpose"], e["key"]] == [x["org"], "added", "receipt", sha256(der).hex()],
         "the event does not announce the key of this receipt")
    need(milliseconds(e["not_before"]) <= created, "the receipt is older than its key")
    need(not e.get("not_after") or created <= milliseconds(e["not_after"]), "the receipt is newer than its key")

    at, leaf, hash_in_log, _ = open_proof(proof, origin, log_keys)  # and has what the decision rests on
    need([at, leaf["event"], hash_in_log] == [index, event, leaf_hash], "the proof is of the event " + leaf["event"])
    need(milliseconds(leaf["at"]) <= created, "the receipt is older than the event that it rests on")

    need(created <= now + CLOCK_SKEW, "the receipt is from the future")
    need(now < valid_until, "the receipt was valid until %s (get a new one)" % x["validUntil"])
    need(created < valid_until <= created + MAX_VALIDITY, "validUntil is not within 7 days after timeCreated")
    for what, have, want in [
            ("org", x["org"], org), ("repo", x["repo"], repo), ("commit", x["commit"], commit),
            ("target", x.get("target", ""), target), ("policy", policy_digest, policy or policy_digest)]:
        need(have == want, "the receipt is for the %s %s, not %s" % (what, have, want))
    need(reached(x, state), "the receipt says %s (standing %s), not %s" % (
        x["state"], x.get("standing", x["state"]), state))
    return x

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("receipt", help="file, or - for stdin")
    parser.add_argument("--log-key", action="append", required=True, metavar="VKEY", help="verifier key; repeatable")
    for name in ("org", "repo", "commit", "state"):
        parser.add_argument("--" + name, required=True, choices=STATES if name == "state" else None)
    parser.add_argument("--target", default="", help="branch that the receipt must be for")
    parser.add_argument("--policy", metavar="DIGEST", help="sha256:… of the contract")
    parser.add_argument("--key", metavar="FILE", help="the only key of receipts that is trusted, in PEM")
    parser.add_argument("--at", metavar="TIME", help="check as of a time such as 2026-11-20T09:00:00.000Z")
    a = parser.parse_args()
    with (sys.stdin.buffer if a.receipt == "-" else open(a.receipt, "rb")) as file:
        receipt = file.read(MAX_FILE + 1)
    key = open(a.key, encoding="ascii").read() if a.key else None
    try:
        x = verify(receipt, a.log_key, a.org, a.repo, a.commit, a.state, a.target, a.policy, key,
                   milliseconds(a.at) if a.at else None)
    except REFUSED as e:
        print("NOT VALID: %s" % (e if isinstance(e, Invalid) else "malformed: %r" % e), file=sys.stderr)
        return 4
    print("valid: %(org)s/%(repo)s@%(commit)s had reached %(state)s (valid until %(validUntil)s)" % x)
    return 0

if __name__ == "__main__":
    sys.exit(main())
