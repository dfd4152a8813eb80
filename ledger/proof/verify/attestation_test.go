package verify

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"golang.org/x/crypto/ssh"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// The time of the recording in the tests.
const recordedAt = ledger.Time(1_795_000_000_000)

// A signer is a key with its identity.
type signer struct {
	key crypto.Signer
	id  identity.Identity
}

func newSigner(t testing.TB, dn string) signer {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	text := must.PublicPEM(t, key.Public())
	id, err := identity.NewIdentity{Kind: identity.KeyIdentity, PEM: text, DN: dn}.Identity()
	must.OK(t, err)
	id.ID, id.CreatedAt = "idn_"+dn, recordedAt-1
	return signer{key, id}
}

// A recorded is an attestation as the ledger has it, with its event before it is rendered.
type recorded struct {
	envelope []byte
	event    ledger.AttestationEvent
	record   ledger.AttestationRecord
}

// recordedBy returns an attestation that a signer has signed, and that the ledger shows.
func recordedBy(t testing.TB, s signer) recorded {
	t.Helper()
	commit := strings.Repeat("1", 40)
	payload, err := attestation.NewStatement("acme/api", commit, attestation.ResultPredicate{
		Predicate: "test:go", Result: ledger.Result{Status: ledger.Pass, DurationMS: 5}, Repo: "acme/api"})
	must.OK(t, err)
	envelope := must.Get(attestation.SignDSSE(s.key, payload))(t)

	e := ledger.AttestationEvent{
		ID: "evt_1", Type: ledger.EventAttestation, Org: "acme", Repo: "api", Commit: commit, Predicate: "test:go",
		Identity: s.id.DN, Result: ledger.Result{Status: ledger.Pass, DurationMS: 5}, Timestamp: recordedAt,
		Attestation: "att_1", PayloadDigest: digest(payload), Key: s.id.Fingerprint, EnvelopeDigest: digest(envelope),
	}
	return recorded{envelope, e,
		ledger.AttestationRecord{ID: e.Attestation, Org: e.Org, Repo: e.Repo, Commit: e.Commit, Predicate: e.Predicate,
			PredicateType: attestation.ResultPredicateType, Identity: e.Identity, Signer: "ci", Result: e.Result,
			RecordedAt: e.Timestamp, PayloadDigest: e.PayloadDigest, Event: e.ID}}
}

func (r recorded) verify(t testing.TB, keys Keys) []Check {
	t.Helper()
	body := must.Get(json.Marshal(r.event))(t)
	checks, _ := Attestation{Envelope: r.envelope, Event: body, Record: &r.record}.Check(keys)
	return checks
}

const goodAttestation = "signature ok, digests ok, record ok"

func TestAttestation(t *testing.T) {
	ci, eve := newSigner(t, "cn=ci,ou=build,o=acme"), newSigner(t, "cn=eve,ou=build,o=acme")
	keys := Listed([]identity.Identity{eve.id, ci.id}, nil)
	good := recordedBy(t, ci)
	const (
		unsigned   = "signature failed, digests ok, record not_checked"
		wrong      = "signature ok, digests ok, record failed"
		wrongBytes = "signature failed, digests failed, record not_checked"
	)

	for name, test := range map[string]struct {
		change func(r *recorded)
		want   string
	}{
		"good":                  {func(*recorded) {}, goodAttestation},
		"of an earlier version": {func(r *recorded) { r.event.Key, r.event.EnvelopeDigest = "", "" }, goodAttestation},
		"predicate was a type": {func(r *recorded) { r.event.Predicate, r.event.Result = "https://x/y", ledger.Result{} },
			goodAttestation},

		"another signature": {func(r *recorded) { r.envelope = recordedBy(t, eve).envelope },
			"signature failed, digests failed, record not_checked"},
		"no envelope":     {func(r *recorded) { r.envelope = []byte{} }, wrongBytes},
		"a commit object": {func(r *recorded) { r.envelope = []byte("tree 1234\n\nx") }, wrongBytes},
		"another signer":  {func(r *recorded) { r.event.Identity, r.record.Identity = eve.id.DN, eve.id.DN }, unsigned},
		"another key":     {func(r *recorded) { r.event.Key = eve.id.Fingerprint }, unsigned},
		"payload digest": {func(r *recorded) { r.event.PayloadDigest = digest(nil) },
			"signature ok, digests failed, record failed"},
		"envelope digest": {func(r *recorded) { r.event.EnvelopeDigest = digest(nil) },
			"signature ok, digests failed, record ok"},
		"event's commit":    {func(r *recorded) { r.event.Commit = strings.Repeat("2", 40) }, wrong},
		"event's predicate": {func(r *recorded) { r.event.Predicate = "test:rust" }, wrong},
		"event's result":    {func(r *recorded) { r.event.Result.Status = ledger.Fail }, wrong},
		"event's repo":      {func(r *recorded) { r.event.Repo = "web" }, wrong},
		"event's ID":        {func(r *recorded) { r.event.ID = "evt_2" }, wrong},

		"record's ID":             {func(r *recorded) { r.record.ID = "att_2" }, wrong},
		"record's org":            {func(r *recorded) { r.record.Org = "globex" }, wrong},
		"record's repo":           {func(r *recorded) { r.record.Repo = "web" }, wrong},
		"record's commit":         {func(r *recorded) { r.record.Commit = strings.Repeat("2", 40) }, wrong},
		"record's predicate":      {func(r *recorded) { r.record.Predicate = "review:code" }, wrong},
		"record's reason":         {func(r *recorded) { r.record.Reason = "it leaks" }, wrong},
		"record's predicate type": {func(r *recorded) { r.record.PredicateType = "https://x/y" }, wrong},
		"record's slot":           {func(r *recorded) { r.record.Slot = "sha256:1" }, wrong},
		"record's result":         {func(r *recorded) { r.record.Result.Status = ledger.Warn }, wrong},
		"record's identity":       {func(r *recorded) { r.record.Identity = eve.id.DN }, wrong},
		"record's signer":         {func(r *recorded) { r.record.Signer = "eve" }, wrong},
		"record's time":           {func(r *recorded) { r.record.RecordedAt++ }, wrong},
		"record's payload digest": {func(r *recorded) { r.record.PayloadDigest = digest(nil) }, wrong},
		"record's event":          {func(r *recorded) { r.record.Event = "evt_2" }, wrong},
		"record's key": {func(r *recorded) {
			r.record.Verification = &ledger.Verification{Key: eve.id.Fingerprint}
		}, wrong},
		"record's lost key": {func(r *recorded) { r.record.Verification = &ledger.Verification{} }, wrong},

		"another type of event": {func(r *recorded) { r.event.Type = ledger.EventState }, "digests failed"},
	} {
		r := good
		test.change(&r)
		if got := summary(r.verify(t, keys)); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
	checks, _ := Attestation{Envelope: good.envelope, Event: []byte("{")}.Check(keys)
	if got := summary(checks); got != "digests failed" {
		t.Errorf("an event that is not JSON: %s", got)
	}
}

// A key counts if it was trusted when the attestation was recorded.
func TestKeysAtTheTime(t *testing.T) {
	ci := newSigner(t, "cn=ci,ou=build,o=acme")
	good := recordedBy(t, ci)
	for name, test := range map[string]struct {
		change func(i *identity.Identity)
		want   bool
	}{
		"trusted":          {func(*identity.Identity) {}, true},
		"just added":       {func(i *identity.Identity) { i.CreatedAt = recordedAt }, true},
		"added later":      {func(i *identity.Identity) { i.CreatedAt = recordedAt + 1 }, false},
		"revoked before":   {func(i *identity.Identity) { i.RevokedAt = recordedAt - 1 }, false},
		"revoked then":     {func(i *identity.Identity) { i.RevokedAt = recordedAt }, true},
		"revoked later":    {func(i *identity.Identity) { i.RevokedAt = recordedAt + 1 }, true},
		"limited later":    {func(i *identity.Identity) { i.May = identity.Predicates{"lint:*"} }, true},
		"with another DN":  {func(i *identity.Identity) { i.DN = "cn=eve,ou=build,o=acme" }, false},
		"with another key": {func(i *identity.Identity) { i.PEM = newSigner(t, ci.id.DN).id.PEM }, false},
	} {
		id := ci.id
		test.change(&id)
		if got := good.verify(t, Listed([]identity.Identity{id}, nil))[0].Status == OK; got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func TestPinnedKeys(t *testing.T) {
	ci, eve := newSigner(t, "cn=ci,ou=build,o=acme"), newSigner(t, "cn=eve,ou=build,o=acme")
	good := recordedBy(t, ci)
	list := func(change func(i *identity.Identity)) string {
		id := ci.id
		id.CreatedAt = recordedAt + 1 // the file says that the key is trusted, whenever the ledger got it
		change(&id)
		text := must.Get(json.Marshal([]identity.Identity{eve.id, id}))(t)
		return string(text)
	}

	for name, test := range map[string]struct {
		file string
		want Status
	}{
		"PEM":             {ci.id.PEM, OK},
		"several":         {"\n" + eve.id.PEM + ci.id.PEM + "\n\n", OK},
		"SSH keys":        {"# ours\n" + sshLine(t, eve) + sshLine(t, ci), OK},
		"other SSH keys":  {sshLine(t, eve), Failed},
		"list":            {list(func(*identity.Identity) {}), OK},
		"another key":     {eve.id.PEM, Failed},
		"limited in list": {list(func(i *identity.Identity) { i.May = identity.Predicates{"lint:*"} }), Failed},
		"revoked in list": {list(func(i *identity.Identity) { i.RevokedAt = recordedAt - 1 }), Failed},
	} {
		keys, err := ParseKeys([]byte(test.file))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := good.verify(t, keys)[0]
		if got.Status != test.want || got.Status == OK && !strings.HasSuffix(got.Detail, ", pinned") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// sshLine returns the public key of a signer in the format of OpenSSH.
func sshLine(t *testing.T, s signer) string {
	t.Helper()
	return string(ssh.MarshalAuthorizedKey(must.Get(ssh.NewPublicKey(s.key.Public()))(t)))
}

func TestFilesOfKeysThatAreRefused(t *testing.T) {
	id := newSigner(t, "cn=ci,ou=build,o=acme").id
	for name, file := range map[string]string{
		"empty":              "",
		"empty list":         "[]",
		"text":               "cn=ci",
		"text after the key": id.PEM + "x",
		"private key":        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
		"broken key":         "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
		"broken certificate": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
		"SSH certificate":    "ssh-ed25519-cert-v01@openssh.com AAAAIHNzaC1lZDI1NTE5LWNlcnQtdjAxQG9wZW5zc2guY29t",
		"broken list":        "[{}",
		"list without a key": `[{"kind":"key","dn":"cn=a"}]`,
		"too large":          strings.Repeat(" ", MaxKeyFile+1),
		"too many":           strings.Repeat(id.PEM, MaxKeys+1),
	} {
		if keys, err := ParseKeys([]byte(file)); err == nil {
			t.Errorf("%s: %d keys", name, len(keys.identities))
		}
	}
}

// FuzzKeys checks that no file of keys causes a panic, and that what is accepted is checked.
func FuzzKeys(f *testing.F) {
	id := newSigner(f, "cn=ci,ou=build,o=acme").id
	text := must.Get(json.Marshal([]identity.Identity{id}))(f)
	f.Add([]byte(id.PEM))
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		if keys, err := ParseKeys(text); err == nil {
			if _, err := keys.keyring("cn=any", 0); err != nil {
				t.Error(err)
			}
		}
	})
}
