package receipt_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/ledger/proof/receipt"
)

const (
	origin = "ledger.example.com/v1/orgs/acme/log"
	commit = "0123456789abcdef0123456789abcdef01234567"
	digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	hour   = ledger.Time(3_600_000)
	start  = ledger.Time(1_795_000_000_000)
)

// A log has the events that a receipt and its key rest on.
type log struct {
	t        *testing.T
	signer   note.Signer
	verifier note.Verifier
	vkey     string
	openings []proof.Opening
	hashes   []tlog.Hash
}

func newLog(t *testing.T) *log {
	t.Helper()
	skey, vkey, err := note.GenerateKey(rand.Reader, origin)
	must.OK(t, err)
	signer := must.Get(note.NewSigner(skey))(t)
	verifier := must.Get(note.NewVerifier(vkey))(t)
	return &log{t: t, signer: signer, verifier: verifier, vkey: vkey}
}

// ReadHashes implements tlog.HashReader.
func (l *log) ReadHashes(indexes []int64) (hashes []tlog.Hash, err error) {
	for _, i := range indexes {
		hashes = append(hashes, l.hashes[i])
	}
	return hashes, nil
}

// add appends an event to the log.
func (l *log) add(event string, kind ledger.EventType, at ledger.Time, body string) proof.Opening {
	l.t.Helper()
	salt := proof.Salt{byte(len(l.openings))}
	o := proof.Opening{Salt: &salt, Leaf: proof.Leaf{At: at, Event: event, Type: kind,
		Hash: proof.HashBody(salt, []byte(body))}}
	hashes, err := tlog.StoredHashes(int64(len(l.openings)), o.Leaf.Record(), l)
	must.OK(l.t, err)
	l.openings, l.hashes = append(l.openings, o), append(l.hashes, hashes...)
	return o
}

// prove returns the proof of an event.
func (l *log) prove(index int64) string {
	l.t.Helper()
	size := int64(len(l.openings))
	root, err := tlog.TreeHash(size, l)
	must.OK(l.t, err)
	path, err := tlog.ProveRecord(size, index, l)
	must.OK(l.t, err)
	signed, err := proof.Checkpoint{Origin: l.signer.Name(), Size: size, Root: root}.Sign(l.signer)
	must.OK(l.t, err)
	extra, err := l.openings[index].Format()
	must.OK(l.t, err)
	return string(proof.Inclusion{Extra: extra, Index: index, Path: path, Checkpoint: signed}.Format())
}

// example returns a receipt, its envelope, and the log that it rests on.
func example(t *testing.T) (r receipt.Receipt, envelope []byte, key *ecdsa.PrivateKey, l *log) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.OK(t, err)
	l = newLog(t)
	l.add("evt_1", "attestation", start, `{"id":"evt_1","type":"attestation"}`)
	l.add("evt_2", "key", start+1, keyEvent(t, key, "acme"))
	leaf := l.add("evt_3", "state", start+2, `{"id":"evt_3","type":"state"}`).Leaf.LeafHash()
	r = receipt.Receipt{
		Scheme: "https", Org: "acme", Repo: "api", Commit: commit, State: ledger.Promotable, PolicyVersion: 3,
		PolicyDigest: digest, CreatedAt: start + hour, ValidUntil: start + 25*hour,
		Evidence: []receipt.Evidence{{Attestation: "att_1", Event: "evt_1", Commit: commit, Predicate: "test:go",
			Identity: "cn=ci", PayloadDigest: digest, EnvelopeDigest: digest, Requirements: []string{"tests"}}},
		Log: receipt.Position{Origin: origin, Index: 2, Event: "evt_3", LeafHash: hex.EncodeToString(leaf[:])},
	}
	envelope, err = r.Sign(key)
	must.OK(t, err)
	return r, envelope, key, l
}

func keyEvent(t *testing.T, key *ecdsa.PrivateKey, org string) string {
	t.Helper()
	id, err := identity.Fingerprint(&key.PublicKey)
	must.OK(t, err)
	return fmt.Sprintf(`{"id":"evt_2","type":"key","org":%q,"action":"added","purpose":"receipt","key":%q,`+
		`"not_before":%q,"not_after":%q}`, org, id, start, start+2*hour)
}

func fails(t *testing.T, err error, what string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), what) {
		t.Errorf("got the error %v, want one about %s", err, what)
	}
}

func TestAReceiptIsWhatWasSigned(t *testing.T) {
	r, envelope, key, _ := example(t)
	opened, err := receipt.Open(envelope, &key.PublicKey)
	must.OK(t, err)
	want, err := r.Payload()
	must.OK(t, err)
	have, err := opened.Payload()
	must.OK(t, err)
	if !bytes.Equal(have, want) {
		t.Errorf("opened %s\nwant %s", have, want)
	}
	if got := strings.Join(r.Properties(), " "); got != "LEDGERD_ATTESTED LEDGERD_PROMOTABLE" {
		t.Errorf("the properties are %s", got)
	}
	for _, part := range []string{
		`"predicateType":"https://in-toto.io/attestation/svr/v0.2"`,
		`"subject":[{"name":"acme/api","digest":{"gitCommit":"` + commit + `"}}]`,
		`"verifier":{"id":"https://ledger.example.com/v1/orgs/acme#ledgerd/v1"`,
		`{"uri":"https://ledger.example.com/v1/orgs/acme/policies/api?version=3","digest":{"sha256":"` + digest[7:] + `"}}`,
	} {
		if !bytes.Contains(want, []byte(part)) {
			t.Errorf("the payload has no %s:\n%s", part, want)
		}
	}
}

// parts are the members of an envelope.
type parts struct {
	Payload     []byte `json:"payload"`
	PayloadType string `json:"payloadType"`
	Signatures  []struct {
		KeyID string `json:"keyid"`
		Sig   []byte `json:"sig"`
	} `json:"signatures"`
}

func TestEveryChangeOfAByteOfPayloadOrSignatureFails(t *testing.T) {
	_, envelope, key, _ := example(t)
	var e parts
	must.OK(t, json.Unmarshal(envelope, &e))
	for _, part := range [][]byte{e.Payload, e.Signatures[0].Sig} {
		for i := range part {
			for _, bit := range []int{0, 1 + i%7} {
				part[i] ^= 1 << bit
				changed := must.Get(json.Marshal(e))(t)
				if _, err := receipt.Open(changed, &key.PublicKey); err == nil {
					t.Fatalf("a receipt with another byte %d was accepted: %s", i, changed)
				}
				part[i] ^= 1 << bit
			}
		}
	}
}

func TestEveryChangeOfTheTextOfAnEnvelopeFails(t *testing.T) {
	_, envelope, key, _ := example(t)
	for i := range envelope {
		for _, c := range []byte("A1=\"") {
			if envelope[i] == c {
				continue
			}
			changed := bytes.Clone(envelope)
			changed[i] = c
			if _, err := receipt.Open(changed, &key.PublicKey); err == nil {
				t.Fatalf("an envelope with %q in place of %q at byte %d was accepted", c, envelope[i], i)
			}
		}
	}
}

func TestOtherEnvelopesAreRefused(t *testing.T) {
	_, envelope, key, _ := example(t)
	other := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	large, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	must.OK(t, err)
	_, err = receipt.Open(envelope, &other.PublicKey)
	fails(t, err, "signatures[0].keyid")
	_, err = receipt.Open(envelope, &large.PublicKey)
	fails(t, err, "P-256")
	_, err = receipt.Open(append(bytes.Repeat([]byte(" "), receipt.MaxEnvelope), envelope...), &key.PublicKey)
	fails(t, err, "bytes")

	var e parts
	must.OK(t, json.Unmarshal(envelope, &e))
	id, sig := e.Signatures[0].KeyID, base64.StdEncoding.EncodeToString(e.Signatures[0].Sig)
	_, err = receipt.Open(bytes.Replace(envelope, []byte(`{"payload"`), []byte(`{"more":1,"payload"`), 1), &key.PublicKey)
	fails(t, err, "more")
	_, err = receipt.Open(bytes.Replace(envelope, []byte("in-toto"), []byte("in-tota"), 1), &key.PublicKey)
	fails(t, err, "payloadType")
	second := fmt.Sprintf(`,{"keyid":%q,"sig":%q}]}`, id, sig)
	_, err = receipt.Open(bytes.Replace(envelope, []byte("]}"), []byte(second), 1), &key.PublicKey)
	fails(t, err, "signatures")
}

func TestInvalidReceiptsAreNotSignedAndNameTheField(t *testing.T) {
	valid, _, key, _ := example(t)
	for field, change := range map[string]func(r *receipt.Receipt){
		"predicate.verifier.id":                        func(r *receipt.Receipt) { r.Scheme = "ftp" },
		"predicate.verifier.policies[0].digest.sha256": func(r *receipt.Receipt) { r.PolicyDigest = digest[7:] },
		"predicate.timeCreated":                        func(r *receipt.Receipt) { r.CreatedAt = 0 },
		"predicate.ledgerd.org":                        func(r *receipt.Receipt) { r.Org = "" },
		"predicate.ledgerd.repo":                       func(r *receipt.Receipt) { r.Repo = "" },
		"predicate.ledgerd.commit":                     func(r *receipt.Receipt) { r.Commit = commit[:12] },
		"predicate.ledgerd.state":                      func(r *receipt.Receipt) { r.State = ledger.Validating },
		"predicate.ledgerd.policyVersion":              func(r *receipt.Receipt) { r.PolicyVersion = 0 },
		"predicate.ledgerd.validUntil":                 func(r *receipt.Receipt) { r.ValidUntil = r.CreatedAt },
		"predicate.ledgerd.validUntil: 2":              func(r *receipt.Receipt) { r.ValidUntil = start + 169*hour + 1 },

		"predicate.ledgerd.evidence":                         func(r *receipt.Receipt) { r.Evidence = nil },
		"predicate.ledgerd.evidence: want a list":            func(r *receipt.Receipt) { r.Evidence = many(r.Evidence[0]) },
		"predicate.ledgerd.evidence: want a list of at most": func(r *receipt.Receipt) { r.Omitted = -1 },
		"predicate.ledgerd.evidence[0].attestation":          func(r *receipt.Receipt) { r.Evidence[0].Attestation = "" },
		"predicate.ledgerd.evidence[0].event":                func(r *receipt.Receipt) { r.Evidence[0].Event = "" },
		"predicate.ledgerd.evidence[0].commit":               func(r *receipt.Receipt) { r.Evidence[0].Commit = "" },
		"predicate.ledgerd.evidence[0].payloadDigest":        func(r *receipt.Receipt) { r.Evidence[0].PayloadDigest = "x" },
		"predicate.ledgerd.evidence[0].envelopeDigest":       func(r *receipt.Receipt) { r.Evidence[0].EnvelopeDigest = "" },
		"predicate.ledgerd.evidence[0].requirements":         func(r *receipt.Receipt) { r.Evidence[0].Requirements = nil },

		"predicate.ledgerd.log.origin":                          func(r *receipt.Receipt) { r.Log.Origin = "x/v1/orgs/y" },
		`predicate.ledgerd.log.origin: "` + origin + `/1"`:      func(r *receipt.Receipt) { r.Log.Origin += "/1" },
		"predicate.ledgerd.log.origin: \"" + origin + "/two\"":  func(r *receipt.Receipt) { r.Log.Origin += "/two" },
		"predicate.ledgerd.log.origin: \"" + origin + "/02\"":   func(r *receipt.Receipt) { r.Log.Origin += "/02" },
		"predicate.ledgerd.log.index":                           func(r *receipt.Receipt) { r.Log.Index = -1 },
		"predicate.ledgerd.log.event":                           func(r *receipt.Receipt) { r.Log.Event = "" },
		"predicate.ledgerd.log.leafHash: it is not a hex SHA-2": func(r *receipt.Receipt) { r.Log.LeafHash = "00" },
	} {
		r := valid
		r.Evidence = []receipt.Evidence{valid.Evidence[0]}
		change(&r)
		_, err := r.Sign(key)
		fails(t, err, field)
	}
	valid.Log.Origin, valid.ValidUntil = origin+"/2", valid.CreatedAt+168*hour
	_, err := valid.Sign(key)
	must.OK(t, err)
}

func many(e receipt.Evidence) (list []receipt.Evidence) {
	for range receipt.MaxEvidence + 1 {
		list = append(list, e)
	}
	return list
}

func TestAStatementWhoseFieldsDisagreeIsRefused(t *testing.T) {
	r, _, _, _ := example(t)
	payload, err := r.Payload()
	must.OK(t, err)
	for _, c := range []struct{ field, old, now string }{
		{"_type", "Statement/v1", "Statement/v2"},
		{"predicateType", "svr/v0.2", "svr/v0.1"},
		{"subject", `}}],"predicateType"`, `}},{"name":"","digest":{"gitCommit":""}}],"predicateType"`},
		{"predicate.verifier.policies", `"policies":[{`, `"policies":[{"uri":"","digest":{"sha256":""}},{`},
		{"subject[0].name", `"acme/api"`, `"acme/web"`},
		{"subject[0].digest.gitCommit", `{"gitCommit":"01`, `{"gitCommit":"02`},
		{"predicate.verifier.id", "acme#ledgerd/v1", "acme#ledgerd/v2"},
		{"predicate.verifier.policies[0].uri", "?version=3", "?version=4"},
		{"predicate.properties", `"LEDGERD_PROMOTABLE"]`, `"LEDGERD_PROMOTABLE","LEDGERD_DEPLOYED"]`},
		{"predicate.ledgerd.state", `"state":"PROMOTABLE"`, `"state":"GREAT"`},
		{"more", `"repo":"api"`, `"repo":"api","more":1`},
		{"form", `"repo":"api"`, `"repo": "api"`},
		{"form", `"repo":"api"`, `"repo":"api","target":""`},
	} {
		changed := bytes.Replace(payload, []byte(c.old), []byte(c.now), 1)
		if bytes.Equal(changed, payload) {
			t.Fatalf("the payload has no %s: %s", c.old, payload)
		}
		_, err := receipt.Parse(changed)
		fails(t, err, c.field)
	}
	if again, err := receipt.Parse(payload); err != nil || again.Commit != commit {
		t.Errorf("parsed %v, error %v", again, err)
	}
}

func TestAReceiptIsGoodForWhatItIsFor(t *testing.T) {
	r, _, _, _ := example(t)
	now := start + 2*hour
	valid := receipt.Want{Org: "acme", Repo: "api", Commit: commit, State: ledger.Promotable, PolicyDigest: digest}
	must.OK(t, r.Check(valid, now))
	lower := valid
	lower.State, lower.PolicyDigest = ledger.Attested, ""
	must.OK(t, r.Check(lower, now))
	must.OK(t, r.Check(valid, r.CreatedAt-300_000))
	must.OK(t, r.Check(valid, r.ValidUntil-1))

	for field, change := range map[string]func(w *receipt.Want){
		"ledgerd.org":          func(w *receipt.Want) { w.Org = "else" },
		"ledgerd.repo":         func(w *receipt.Want) { w.Repo = "web" },
		"ledgerd.commit":       func(w *receipt.Want) { w.Commit = strings.Repeat("a", 40) },
		"ledgerd.state":        func(w *receipt.Want) { w.State = ledger.Deployed },
		"not DRAFT":            func(w *receipt.Want) { w.State = ledger.Draft },
		"ledgerd.target":       func(w *receipt.Want) { w.Target = "main" },
		"policies[0].digest":   func(w *receipt.Want) { w.PolicyDigest = "sha256:00" },
		"policies[0].digest.s": func(w *receipt.Want) { w.PolicyDigest = digest[7:] },
	} {
		want := valid
		change(&want)
		fails(t, r.Check(want, now), field)
	}
	fails(t, r.Check(valid, r.CreatedAt-300_001), "timeCreated")
	fails(t, r.Check(valid, r.ValidUntil), "validUntil")
}
