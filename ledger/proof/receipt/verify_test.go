package receipt_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof/receipt"
)

// valid lists receipts that all verifiers accept.
var valid = map[string]func(tr *trial){
	"as it is":             func(*trial) {},
	"a lower state":        func(tr *trial) { tr.want.State = ledger.Attested },
	"the pinned key":       func(tr *trial) { tr.pinned = tr.receipt.Key.PublicKey },
	"the policy":           func(tr *trial) { tr.want.PolicyDigest = digest },
	"several log keys":     func(tr *trial) { tr.vkeys = append([]string{newLog(tr.t).vkey}, tr.vkeys...) },
	"its last millisecond": func(tr *trial) { tr.now = tr.content.ValidUntil - 1 },
	"the clock is behind":  func(tr *trial) { tr.now = tr.content.CreatedAt - 300_000 },
	"7 days":               func(tr *trial) { tr.content.ValidUntil = tr.content.CreatedAt + 168*hour; tr.sign() },
	"http":                 func(tr *trial) { tr.content.Scheme = "http"; tr.sign() },
	"a target branch":      func(tr *trial) { tr.content.Target, tr.want.Target = "main", "main"; tr.sign() },
	"deployed, no evidence": func(tr *trial) {
		tr.content.State, tr.content.Evidence, tr.content.Omitted = ledger.Deployed, []receipt.Evidence{}, 3
		tr.sign()
	},
	"deployed, and its standing": func(tr *trial) { tr.deploy(ledger.Promotable) },
	"a lower standing":           func(tr *trial) { tr.deploy(ledger.Attested); tr.want.State = ledger.Attested },
	"deployed, whatever it is":   func(tr *trial) { tr.deploy(ledger.Draft); tr.want.State = ledger.Deployed },
	"text that JSON escapes": func(tr *trial) {
		tr.content.Evidence[0].Identity = "cn=\"<ä&\u2028\u007f\U0001f600\\\n\x01"
		tr.sign()
	},
	"no salt":         func(tr *trial) { tr.log.openings[2].Salt = nil; tr.receipt.Proof = tr.log.prove(2) },
	"no end":          func(tr *trial) { tr.event(`,"not_after":"`+(start+2*hour).String()+`"`, "") },
	"a long log":      func(tr *trial) { tr.grow(41); tr.restOn(2) },
	"its last leaf":   func(tr *trial) { tr.grow(41); tr.restOn(40) },
	"a leaf in it":    func(tr *trial) { tr.grow(41); tr.restOn(37) },
	"a leaf of 32":    func(tr *trial) { tr.grow(32); tr.restOn(31) },
	"a log of two":    func(tr *trial) { tr.grow(6); tr.restOn(5) },
	"a cosignature":   func(tr *trial) { tr.receipt.Proof += "— witness.example.com " + someBase64 + "\n" },
	"a rotated log":   func(tr *trial) { tr.receipt.Proof += "— " + origin + " " + someBase64 + "\n" },
	"the newest time": func(tr *trial) { tr.content.CreatedAt = start + 2*hour; tr.sign() },
	"the oldest time": func(tr *trial) { tr.content.CreatedAt, tr.now = start+2, start+2; tr.sign() },
}

// someBase64 is no signature.
var someBase64 = base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("ledgerd!"), 9))

// tampered lists receipts that all verifiers refuse, with what package receipt says.
var tampered = map[string]struct {
	why    string
	change func(tr *trial)
}{
	// Changes by someone without the key.
	"another commit": {"signatures[0].sig", func(tr *trial) { tr.payload(commit, commit[1:]+"0") }},
	"another state":  {"signatures[0].sig", func(tr *trial) { tr.payload("PROMOTABLE", "ATTESTED") }},
	"valid for longer": {"signatures[0].sig", func(tr *trial) {
		tr.payload(`"validUntil":"20`, `"validUntil":"21`)
	}},
	"another byte": {"signatures[0].sig", func(tr *trial) {
		tr.signature(func(sig []byte) []byte { sig[len(sig)-1] ^= 1; return sig })
	}},
	"another key": {"signatures[0].sig", func(tr *trial) {
		id := tr.parts().Signatures[0].KeyID
		tr.key = newKey(tr.t)
		tr.sign()
		tr.envelope(tr.parts().Signatures[0].KeyID, id)
	}},
	"another key's ID": {"signatures[0].keyid", func(tr *trial) {
		tr.envelope(tr.parts().Signatures[0].KeyID, strings.Repeat("0", 64))
	}},
	"a key that is not announced": {"event.key", func(tr *trial) {
		tr.key = newKey(tr.t)
		tr.sign()
		tr.receipt.Key.PublicKey = must.PublicPEM(tr.t, tr.key.Public())
	}},
	"not the pinned key": {"key.public_key", func(tr *trial) { tr.pinned = must.PublicPEM(tr.t, newKey(tr.t).Public()) }},
	"a key on P-384": {"P-256", func(tr *trial) {
		key := must.Get(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))(tr.t)
		tr.receipt.Key.PublicKey = must.PublicPEM(tr.t, key.Public())
	}},
	"two keys": {"one public key", func(tr *trial) { tr.receipt.Key.PublicKey += tr.receipt.Key.PublicKey }},
	"no signature": {"signatures", func(tr *trial) {
		e := tr.parts().Signatures[0]
		tr.envelope(`{"keyid":"`+e.KeyID+`","sig":"`+base64.StdEncoding.EncodeToString(e.Sig)+`"}`, "")
	}},
	"two signatures": {"signatures", func(tr *trial) { tr.envelope("]}", `,{"keyid":"","sig":""}]}`) }},
	"more members":   {"more", func(tr *trial) { tr.envelope(`{"payload"`, `{"more":1,"payload"`) }},
	"another type":   {"payloadType", func(tr *trial) { tr.envelope("in-toto", "in-tota") }},
	"raw signature":  {"signatures[0].sig", func(tr *trial) { tr.signature(rawOf) }},
	"a long integer": {"signatures[0].sig", func(tr *trial) { tr.signature(longerOf) }},
	"a trailing byte": {"signatures[0].sig", func(tr *trial) {
		tr.signature(func(s []byte) []byte { return append(s, 0) })
	}},
	"r and s are 0": {"signatures[0].sig", func(tr *trial) {
		tr.signature(func([]byte) []byte { return derOf(0, 0) })
	}},
	"r and s are 1": {"signatures[0].sig", func(tr *trial) {
		tr.signature(func([]byte) []byte { return derOf(1, 1) })
	}},
	"a padded payload": {"payload", func(tr *trial) { tr.envelope(`","payloadType`, `=","payloadType`) }},
	"blanks in base64": {"payload", func(tr *trial) { tr.envelope(`","payloadType`, `\n","payloadType`) }},

	// Proofs of something else.
	"another index":   {"does not lead", func(tr *trial) { tr.line(2, swapIn("2", "1")) }},
	"an index beyond": {"not in a log", func(tr *trial) { tr.line(2, swapIn("2", "3")) }},
	"an index with 0": {"index", func(tr *trial) { tr.line(2, swapIn("2", "02")) }},
	"another sibling": {"does not lead", func(tr *trial) {
		tr.line(3, func(string) string { return hash32("x") })
	}},
	"no sibling": {"does not lead", func(tr *trial) {
		lines := strings.SplitAfter(tr.receipt.Proof, "\n")
		tr.receipt.Proof = strings.Join(append(lines[:3], lines[4:]...), "")
	}},
	"one sibling more": {"does not lead", func(tr *trial) {
		tr.line(3, func(s string) string { return s + "\n" + s })
	}},
	"a short sibling": {"SHA-256", func(tr *trial) { tr.line(3, func(string) string { return "AAAA" }) }},
	"64 siblings": {"63", func(tr *trial) {
		tr.line(3, func(s string) string { return strings.Repeat(s+"\n", 63) + s })
	}},
	"another size": {"checkpoint", func(tr *trial) { tr.line(6, swapIn("3", "4")) }},
	"another root": {"checkpoint", func(tr *trial) { tr.line(7, func(string) string { return hash32("x") }) }},
	"a signature of none": {"checkpoint", func(tr *trial) {
		tr.line(-1, func(s string) string { return s[:60] + someBase64 })
	}},
	"a key of none":      {"checkpoint", func(tr *trial) { tr.vkeys = []string{newLog(tr.t).vkey} }},
	"another header":     {"tlog-proof", func(tr *trial) { tr.line(0, swapIn("v1", "v2")) }},
	"no proof":           {"tlog-proof", func(tr *trial) { tr.receipt.Proof = "" }},
	"another event":      {"log.event", func(tr *trial) { tr.receipt.Proof = tr.log.prove(1) }},
	"another leaf":       {"does not lead", func(tr *trial) { tr.extra(`type\":\"state`, `type\":\"radar`) }},
	"a leaf with blanks": {"canonical", func(tr *trial) { tr.extra(`{\"at`, `{ \"at`) }},
	"an extra member":    {"more", func(tr *trial) { tr.extra(`"salt"`, `"more":1,"salt"`) }},
	"a short salt":       {"salt", func(tr *trial) { tr.extra(`"salt":"02`, `"salt":"`) }},
	"a fork": {"log.leafHash", func(tr *trial) {
		signed := tr.receipt.Envelope
		tr.log.openings, tr.log.hashes = tr.log.openings[:2], tr.log.hashes[:3]
		tr.log.add("evt_3", "state", start+2, `{}`)
		tr.restOn(2)
		tr.receipt.Envelope = signed
	}},

	// Keys that the log does not announce for this.
	"another purpose":      {"event.purpose", func(tr *trial) { tr.event(`"receipt"`, `"log"`) }},
	"a revoked key":        {"event.action", func(tr *trial) { tr.event(`"added"`, `"revoked"`) }},
	"a key of another org": {"event.org", func(tr *trial) { tr.event(`"acme"`, `"else"`) }},
	"a later key": {"event.not_before", func(tr *trial) {
		tr.event(`"not_before":"`+start.String(), `"not_before":"`+(start+hour+1).String())
	}},
	"an earlier key": {"event.not_after", func(tr *trial) {
		tr.event((start + 2*hour).String(), (start + hour - 1).String())
	}},
	"another leaf's type": {"type audit", func(tr *trial) { tr.announce("audit", tr.receipt.Key.Event) }},
	"another event's type": {"type key", func(tr *trial) {
		tr.event(`"type":"key"`, `"type":"audit"`)
	}},
	"another event's ID": {"evt_2", func(tr *trial) { tr.event(`"evt_2"`, `"evt_9"`) }},
	"another body":       {"body of evt_2", func(tr *trial) { tr.receipt.Key.Event += " " }},
	"a pruned body": {"pruned", func(tr *trial) {
		tr.log.openings[1].Salt = nil
		tr.receipt.Key.Proof = tr.log.prove(1)
	}},
	"announced by another event": {"type state", func(tr *trial) { tr.receipt.Key.Proof = tr.log.prove(2) }},
	"announced by another log": {"checkpoint", func(tr *trial) {
		other := newLog(tr.t)
		other.openings, other.hashes = tr.log.openings, tr.log.hashes
		tr.receipt.Key.Proof = other.prove(1)
	}},

	// Statements that were signed, but not by ledgerd as it is.
	"another host":       {"verifier.id", func(tr *trial) { tr.signWith("https://ledger.", "https://ledge.") }},
	"another version":    {"verifier.id", func(tr *trial) { tr.signWith("#ledgerd/v1", "#ledgerd/v2") }},
	"a policy of a repo": {"policies[0].uri", func(tr *trial) { tr.signWith("/policies/api", "/policies/web") }},
	"a policy version":   {"policies[0].uri", func(tr *trial) { tr.signWith("?version=3", "?version=4") }},
	"version 0":          {"policyVersion", func(tr *trial) { tr.content.PolicyVersion = 0; tr.sign() }},
	"a malformed policy": {"policies[0].digest", func(tr *trial) {
		tr.content.PolicyDigest = digest[:70]
		tr.sign()
	}},
	"two policies": {"policies", func(tr *trial) {
		tr.signWith(`"policies":[{`, `"policies":[{"uri":"","digest":{"sha256":""}},{`)
	}},
	"another subject": {"subject[0].digest", func(tr *trial) {
		tr.signWith(`{"gitCommit":"01`, `{"gitCommit":"02`)
	}},
	"another name": {"subject[0].name", func(tr *trial) { tr.signWith(`"acme/api"`, `"acme/web"`) }},
	"two subjects": {"subject", func(tr *trial) {
		tr.signWith(`"subject":[{`, `"subject":[{"name":"","digest":{"gitCommit":""}},{`)
	}},
	"more properties":   {"properties", func(tr *trial) { tr.signWith(`MOTABLE"]`, `MOTABLE","LEDGERD_DEPLOYED"]`) }},
	"another predicate": {"predicateType", func(tr *trial) { tr.signWith("svr/v0.2", "vsa/v1") }},
	"another statement": {"_type", func(tr *trial) { tr.signWith("Statement/v1", "Statement/v2") }},
	"a log of an org":   {"log.origin", func(tr *trial) { tr.signWith("orgs/acme/log", "orgs/else/log") }},
	"a log of an epoch": {"log.origin", func(tr *trial) { tr.signWith("orgs/acme/log", "orgs/acme/log/1") }},
	"a later epoch":     {"is of the log", func(tr *trial) { tr.content.Log.Origin += "/2"; tr.sign() }},
	"a short commit": {"commit", func(tr *trial) {
		tr.content.Commit, tr.want.Commit = commit[:12], commit[:12]
		tr.sign()
	}},
	"a standing of others": {"standing", func(tr *trial) {
		tr.signWith(`"state":"PROMOTABLE"`, `"state":"PROMOTABLE","standing":"PROMOTABLE"`)
	}},
	"a standing too high": {"standing", func(tr *trial) { tr.deploy(ledger.Deployed) }},
	"a standing of none": {"standing", func(tr *trial) {
		tr.deploy(ledger.Attested)
		tr.signWith(`"standing":"ATTESTED"`, `"standing":"NONE"`)
	}},
	"properties beyond the standing": {"properties", func(tr *trial) {
		tr.deploy(ledger.Attested)
		tr.signWith(`ATTESTED","LEDGERD_DEPLOYED"`, `ATTESTED","LEDGERD_PROMOTABLE","LEDGERD_DEPLOYED"`)
	}},
	"a low state":      {"state", func(tr *trial) { tr.signWith(`"state":"PROMOTABLE"`, `"state":"VALIDATING"`) }},
	"a digest missing": {"payloadDigest", func(tr *trial) { tr.content.Evidence[0].PayloadDigest = ""; tr.sign() }},
	"a digest of nothing": {"envelopeDigest", func(tr *trial) {
		tr.content.Evidence[0].EnvelopeDigest = digest[7:]
		tr.sign()
	}},
	"too much evidence": {"evidence", func(tr *trial) {
		tr.content.Evidence = many(tr.content.Evidence[0])
		tr.sign()
	}},
	"no evidence": {"evidence", func(tr *trial) {
		tr.content.Evidence = nil
		tr.signWith(`"evidence":[]`, `"evidence":null`)
	}},
	"blanks":             {"form", func(tr *trial) { tr.signWith(`"repo":"api"`, `"repo": "api"`) }},
	"a member twice":     {"duplicate", func(tr *trial) { tr.signWith(`"repo":"api"`, `"repo":"web","repo":"api"`) }},
	"an unknown member":  {"more", func(tr *trial) { tr.signWith(`"repo":"api"`, `"repo":"api","more":1`) }},
	"a member missing":   {"evidence", func(tr *trial) { tr.signWith(`"evidence"`, `"evidenced"`) }},
	"a time with a zone": {"form", func(tr *trial) { tr.signWith(`Z","properties"`, `+00:00","properties"`) }},
	"another leaf hash":  {"log.leafHash", func(tr *trial) { tr.content.Log.LeafHash = digest[7:]; tr.sign() }},
	"another leaf index": {"log.index", func(tr *trial) { tr.content.Log.Index++; tr.sign() }},
	"another leaf event": {"log.event", func(tr *trial) { tr.content.Log.Event = "evt_1"; tr.sign() }},

	// Receipts for something else, or for another time.
	"more than 7 days": {"validUntil", func(tr *trial) {
		tr.content.ValidUntil = tr.content.CreatedAt + 168*hour + 1
		tr.sign()
	}},
	"valid for no time": {"validUntil", func(tr *trial) {
		tr.content.ValidUntil = tr.content.CreatedAt
		tr.now = tr.content.CreatedAt - 1
		tr.sign()
	}},
	"expired":         {"validUntil", func(tr *trial) { tr.now = tr.content.ValidUntil }},
	"from the future": {"timeCreated", func(tr *trial) { tr.now = tr.content.CreatedAt - 300_001 }},
	"before the event": {"timeCreated", func(tr *trial) {
		tr.content.CreatedAt = start + 1
		tr.now = start + 1
		tr.sign()
	}},
	"not the org":                    {"ledgerd.org", func(tr *trial) { tr.want.Org = "else" }},
	"not the repo":                   {"ledgerd.repo", func(tr *trial) { tr.want.Repo = "web" }},
	"not the commit":                 {"ledgerd.commit", func(tr *trial) { tr.want.Commit = strings.Repeat("a", 40) }},
	"not the state":                  {"ledgerd.state", func(tr *trial) { tr.want.State = ledger.Deployed }},
	"deployed, but not its standing": {"ledgerd.standing", func(tr *trial) { tr.deploy(ledger.Attested) }},
	"deployed, and nothing else": {"ledgerd.standing", func(tr *trial) {
		tr.deploy(ledger.Draft)
		tr.want.State = ledger.Attested
	}},
	"not the branch": {"ledgerd.target", func(tr *trial) { tr.want.Target = "main" }},
	"not any branch": {"ledgerd.target", func(tr *trial) { tr.content.Target = "main"; tr.sign() }},
	"not the policy": {"policies[0].digest", func(tr *trial) {
		tr.want.PolicyDigest = "sha256:" + strings.Repeat("0", 64)
	}},
}

func TestVerifiersAgree(t *testing.T) {
	var trials []*trial
	var names []string
	for name, change := range valid {
		tr := newTrial(t)
		change(tr)
		if err := tr.verify(); err != nil {
			t.Errorf("%s: package receipt: %v", name, err)
		}
		trials, names = append(trials, tr), append(names, name)
	}
	for name, c := range tampered {
		tr := newTrial(t)
		c.change(tr)
		if err := tr.verify(); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: package receipt: got the error %v, want one about %s", name, err, c.why)
		}
		trials, names = append(trials, tr), append(names, name)
	}

	for program, script := range scripts {
		verdicts := script.verdicts(t, program, trials)
		for i, why := range verdicts {
			if _, want := valid[names[i]]; want != (why == "") {
				t.Errorf("%s: %s: got the error %q, want valid %t", names[i], program, why, want)
			}
			if testing.Verbose() && why != "" {
				t.Logf("%s: %s: %s", names[i], program, why)
			}
		}
	}
}

// A script verifies receipts in another language.
type script struct{ file, all string }

// scripts are those of docs/verify, with programs that verify a list of trials.
var scripts = map[string]script{
	"python3": {"receipt.py", `
import json, sys
sys.path.insert(0, "../../../docs/verify")
import receipt
verdicts = []
for t in json.load(sys.stdin):
    try:
        receipt.verify(t["text"].encode(), t["log_keys"], t["org"], t["repo"], t["commit"], t["state"], t["target"],
                       t["policy"], t["key"], receipt.milliseconds(t["at"]))
        verdicts.append("")
    except receipt.REFUSED as e:
        verdicts.append(repr(e))
print(json.dumps(verdicts))`},
	"node": {"receipt.mjs", `
import { readFileSync } from "node:fs"
import { verify } from "../../../docs/verify/receipt.mjs"
console.log(JSON.stringify(JSON.parse(readFileSync(0)).map((t) => {
  try {
    verify(t.text, t.log_keys, t, Date.parse(t.at))
    return ""
  } catch (e) {
    if (e instanceof ReferenceError) throw e
    return e.message
  }
})))`},
}

// verdicts returns why the script refuses trials; empty if it accepts them.
func (s script) verdicts(t *testing.T, program string, trials []*trial) (verdicts []string) {
	t.Helper()
	testenv.Need(t, program)
	type member map[string]any
	var list []member
	for _, tr := range trials {
		text := must.Get(json.Marshal(tr.receipt))(t)
		list = append(list, member{
			"text": string(text), "log_keys": tr.vkeys, "org": tr.want.Org, "repo": tr.want.Repo, "commit": tr.want.Commit,
			"state": tr.want.State, "target": tr.want.Target, "policy": tr.want.PolicyDigest, "key": tr.pinned,
			"at": tr.now.String(),
		})
	}
	input := must.Get(json.Marshal(list))(t)

	args := []string{"-c", s.all}
	if program == "node" {
		args = []string{"--input-type=module", "-e", s.all}
	}
	command := exec.Command(program, args...)
	command.Stdin = bytes.NewReader(input)
	var failure bytes.Buffer
	command.Stderr = &failure
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", program, err, failure.String())
	}
	must.OK(t, json.Unmarshal(output, &verdicts))
	if len(verdicts) != len(trials) {
		t.Fatalf("%s has %d verdicts for %d receipts", program, len(verdicts), len(trials))
	}
	return verdicts
}

func TestScriptsReportBySayingWhyAndTheExitStatus(t *testing.T) {
	valid, expired, pinned := newTrial(t), newTrial(t), newTrial(t)
	expired.now = expired.content.ValidUntil
	pinned.pinned = must.PublicPEM(t, newKey(t).Public())
	for program, s := range scripts {
		for _, c := range []struct {
			tr   *trial
			exit int
			want string
			more []string
		}{
			{valid, 0, "valid: acme/api@" + commit + " had reached PROMOTABLE", nil},
			{expired, 4, "NOT VALID: the receipt was valid until", nil},
			{pinned, 4, "pinned", nil},
			{valid, 2, "", []string{"--nonsense"}},
			{valid, 2, "", []string{"--state", "GREAT"}},
		} {
			exit, output := c.tr.run(program, s, c.more...)
			if exit != c.exit || !strings.Contains(output, c.want) {
				t.Errorf("%s %s: exit status %d, want %d with %q\n%s", program, s.file, exit, c.exit, c.want, output)
			}
		}
	}
}

// run runs a script on a receipt, as a person would.
func (tr *trial) run(program string, s script, more ...string) (exit int, output string) {
	tr.t.Helper()
	testenv.Need(tr.t, program)
	dir := tr.t.TempDir()
	text := must.Get(json.Marshal(tr.receipt))(tr.t)
	file, pinned := filepath.Join(dir, "receipt.json"), filepath.Join(dir, "key.pem")
	must.OK(tr.t, os.WriteFile(file, text, 0o600))
	args := []string{"../../../docs/verify/" + s.file, file, "--log-key", tr.vkeys[0], "--org", tr.want.Org,
		"--repo", tr.want.Repo, "--commit", tr.want.Commit, "--state", tr.want.State.String(), "--at", tr.now.String()}
	if tr.pinned != "" {
		must.OK(tr.t, os.WriteFile(pinned, []byte(tr.pinned), 0o600))
		args = append(args, "--key", pinned)
	}

	command := exec.Command(program, append(args, more...)...)
	out, _ := command.CombinedOutput() // the exit status is the result
	return command.ProcessState.ExitCode(), string(out)
}

func TestScriptsAreShort(t *testing.T) {
	for _, s := range scripts {
		text := must.Read(t, "../../../docs/verify/"+s.file)
		if n := bytes.Count(text, []byte("\n")); n >= 320 {
			t.Errorf("%s has %d lines, want fewer than 320", s.file, n)
		}
	}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	return must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
}

// rawOf returns a DER signature as r and s of 32 bytes each.
func rawOf(der []byte) []byte {
	r, s := integersOf(der)
	return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
}

// longerOf returns a DER signature with a zero byte before r that is not needed.
func longerOf(der []byte) []byte {
	n := der[3]
	return bytes.Join([][]byte{{0x30, der[1] + 1, 2, n + 1, 0}, der[4:]}, nil)
}

func integersOf(der []byte) (r, s *big.Int) {
	n := int(der[3])
	return new(big.Int).SetBytes(der[4 : 4+n]), new(big.Int).SetBytes(der[6+n:])
}

func derOf(r, s byte) []byte { return []byte{0x30, 6, 2, 1, r, 2, 1, s} }

// hash32 returns 32 bytes in base64.
func hash32(fill string) string {
	return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte(fill), 32))
}
