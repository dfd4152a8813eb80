package receipt_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof/receipt"
)

func TestTheProofIsThatOfTheReceipt(t *testing.T) {
	r, _, _, l := example(t)
	checkpoint, err := r.CheckProof([]byte(l.prove(2)), l.verifier)
	must.OK(t, err)
	if checkpoint.Size != 3 || checkpoint.Origin != origin {
		t.Errorf("the checkpoint is %+v", checkpoint)
	}
	other := newLog(t)
	other.openings, other.hashes = l.openings, l.hashes

	for field, change := range map[string]func(r *receipt.Receipt){
		"log.event":    func(r *receipt.Receipt) { r.Log.Event = "evt_1" },
		"log.index":    func(r *receipt.Receipt) { r.Log.Index = 1 },
		"log.leafHash": func(r *receipt.Receipt) { r.Log.LeafHash = digest[7:] },
		"is of the log": func(r *receipt.Receipt) {
			r.Log.Origin += "/2"
		},
		"timeCreated": func(r *receipt.Receipt) { r.CreatedAt = start + 1 },
	} {
		changed := r
		change(&changed)
		_, err := changed.CheckProof([]byte(l.prove(2)), l.verifier)
		fails(t, err, field)
	}
	_, err = r.CheckProof([]byte(l.prove(2)), other.verifier)
	fails(t, err, "checkpoint")
	_, err = r.CheckProof([]byte(l.prove(1)), l.verifier)
	fails(t, err, "log.event")
	_, err = r.CheckProof([]byte("proof"), l.verifier)
	fails(t, err, "proof")
	_, err = r.CheckProof([]byte(l.prove(2)))
	fails(t, err, "checkpoint")
}

func TestEveryChangeOfAByteOfAProofFails(t *testing.T) {
	r, _, _, l := example(t)
	l.openings[2].Salt = nil
	text := l.prove(2)
	for i := range text {
		changed := []byte(text)
		changed[i] ^= 1
		if _, err := r.CheckProof(changed, l.verifier); err == nil {
			t.Errorf("a proof with another byte %d was accepted:\n%s", i, changed)
		}
	}
}

// announced returns the announcement of a key by the second event of a log.
func announced(t *testing.T, key *ecdsa.PrivateKey, l *log) receipt.Announcement {
	t.Helper()
	text := must.PublicPEM(t, key.Public())
	return receipt.Announcement{PublicKey: text, Event: keyEvent(t, key, "acme"), Proof: l.prove(1)}
}

func TestAKeyIsThatOfTheLog(t *testing.T) {
	r, envelope, key, l := example(t)
	a := announced(t, key, l)
	opened, err := receipt.OpenKey(a, origin, l.verifier)
	must.OK(t, err)
	must.OK(t, opened.Covers(r))
	_, err = receipt.Open(envelope, opened.PublicKey)
	must.OK(t, err)

	other := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	text := must.PublicPEM(t, other.Public())
	for what, change := range map[string]func(a *receipt.Announcement){
		"event.key":            func(a *receipt.Announcement) { a.PublicKey = text },
		"PEM":                  func(a *receipt.Announcement) { a.PublicKey = "key" },
		"one public key":       func(a *receipt.Announcement) { a.PublicKey += text },
		"body of evt_2 is not": func(a *receipt.Announcement) { a.Event = keyEvent(t, other, "acme") },
		"type attestation":     func(a *receipt.Announcement) { a.Proof = l.prove(0) },
		"parse proof":          func(a *receipt.Announcement) { a.Proof = "" },
	} {
		changed := a
		change(&changed)
		_, err := receipt.OpenKey(changed, origin, l.verifier)
		fails(t, err, what)
	}
	_, err = receipt.OpenKey(a, origin+"/2", l.verifier)
	fails(t, err, "is of the log")
}

func TestOnlyAnEventThatAddsAReceiptKeyAnnouncesOne(t *testing.T) {
	_, _, key, _ := example(t)
	for field, change := range map[string][2]string{
		"event.purpose": {`"receipt"`, `"log"`},
		"event.action":  {`"added"`, `"revoked"`},
		"timeless":      {},
	} {
		l := newLog(t)
		l.add("evt_1", "state", start, "{}")
		body := strings.Replace(keyEvent(t, key, "acme"), change[0], change[1], 1)
		l.add("evt_2", "key", start, body)
		a := announced(t, key, l)
		a.Event = body
		_, err := receipt.OpenKey(a, origin, l.verifier)
		if change[0] == "" {
			must.OK(t, err)
			continue
		}
		fails(t, err, field)
	}
}

func TestAKeyCoversReceiptsOfItsOrgAndTime(t *testing.T) {
	r, _, key, l := example(t)
	k, err := receipt.OpenKey(announced(t, key, l), origin, l.verifier)
	must.OK(t, err)
	for _, c := range []struct {
		at   ledger.Time
		what string
	}{{k.NotBefore, ""}, {k.NotAfter, ""}, {k.NotBefore - 1, "not_before"}, {k.NotAfter + 1, "not_after"}} {
		r.CreatedAt = c.at
		if err := k.Covers(r); c.what != "" {
			fails(t, err, c.what)
		} else {
			must.OK(t, err)
		}
	}
	r.CreatedAt, r.Org = k.NotBefore, "else"
	fails(t, k.Covers(r), "event.org")
	k.Org, k.NotAfter, r.CreatedAt = "else", 0, k.NotAfter+1
	must.OK(t, k.Covers(r))
}
