package receipt_test

import (
	"bytes"
	"crypto/ecdsa"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/proof/receipt"
)

// A trial is a receipt, and what it is verified with.
type trial struct {
	t       *testing.T
	receipt ledger.Receipt
	want    receipt.Want
	now     ledger.Time
	vkeys   []string
	pinned  string // key of receipts in PEM

	content receipt.Receipt
	key     *ecdsa.PrivateKey
	log     *log
}

func newTrial(t *testing.T) *trial {
	t.Helper()
	r, envelope, key, l := example(t)
	return &trial{
		t: t, receipt: ledger.Receipt{Envelope: envelope, Proof: l.prove(2), Key: announced(t, key, l)},
		want: receipt.Want{Org: "acme", Repo: "api", Commit: commit, State: ledger.Promotable},
		now:  start + 2*hour, vkeys: []string{l.vkey}, content: r, key: key, log: l,
	}
}

// deploy makes the receipt one for DEPLOYED, with a standing.
func (tr *trial) deploy(standing ledger.State) {
	tr.t.Helper()
	tr.content.State, tr.content.Standing = ledger.Deployed, &standing
	tr.sign()
}

// sign signs the receipt again, after the content was changed.
func (tr *trial) sign() { tr.signWith("", "") }

// signWith signs the receipt again, with its payload changed.
func (tr *trial) signWith(old, now string) {
	tr.t.Helper()
	payload, err := tr.content.Payload()
	must.OK(tr.t, err)
	tr.receipt.Envelope, err = attestation.SignDSSE(tr.key, []byte(tr.swap(string(payload), old, now)))
	must.OK(tr.t, err)
}

func (tr *trial) swap(text, old, now string) string {
	tr.t.Helper()
	if !strings.Contains(text, old) {
		tr.t.Fatalf("%s has no %s", text, old)
	}
	return strings.Replace(text, old, now, 1)
}

// envelope changes the text of the envelope.
func (tr *trial) envelope(old, now string) {
	tr.t.Helper()
	tr.receipt.Envelope = []byte(tr.swap(string(tr.receipt.Envelope), old, now))
}

// payload changes the payload, and leaves the signature as it is.
func (tr *trial) payload(old, now string) {
	tr.t.Helper()
	e := tr.parts()
	tr.envelope(base64.StdEncoding.EncodeToString(e.Payload),
		base64.StdEncoding.EncodeToString([]byte(tr.swap(string(e.Payload), old, now))))
}

// signature changes the bytes of the signature.
func (tr *trial) signature(change func(sig []byte) []byte) {
	tr.t.Helper()
	sig := tr.parts().Signatures[0].Sig
	old := base64.StdEncoding.EncodeToString(sig)
	tr.envelope(old, base64.StdEncoding.EncodeToString(change(bytes.Clone(sig))))
}

func (tr *trial) parts() (e parts) {
	tr.t.Helper()
	must.OK(tr.t, json.Unmarshal(tr.receipt.Envelope, &e))
	return e
}

// line replaces a line of the proof, counted from 0 or, if negative, from the last one.
func (tr *trial) line(n int, change func(line string) string) {
	tr.t.Helper()
	lines := strings.Split(strings.TrimSuffix(tr.receipt.Proof, "\n"), "\n")
	if n < 0 {
		n += len(lines)
	}
	lines[n] = change(lines[n])
	tr.receipt.Proof = strings.Join(lines, "\n") + "\n"
}

// swapIn returns a function for line.
func swapIn(old, now string) func(line string) string {
	return func(line string) string { return strings.Replace(line, old, now, 1) }
}

// extra changes the opening in the extra line of the proof.
func (tr *trial) extra(old, now string) {
	tr.t.Helper()
	tr.line(1, func(line string) string {
		text := must.Get(base64.StdEncoding.DecodeString(strings.TrimPrefix(line, "extra ")))(tr.t)
		return "extra " + base64.StdEncoding.EncodeToString([]byte(tr.swap(string(text), old, now)))
	})
}

// announce lets the log announce the key with another event.
func (tr *trial) announce(kind ledger.EventType, body string) {
	tr.t.Helper()
	l := &log{t: tr.t, signer: tr.log.signer, verifier: tr.log.verifier, vkey: tr.log.vkey}
	l.add("evt_1", "attestation", start, `{}`)
	l.add("evt_2", kind, start+1, body)
	l.add("evt_3", "state", start+2, `{"id":"evt_3","type":"state"}`)
	tr.log, tr.receipt.Key.Event = l, body
	tr.restOn(2)
}

// event announces the key with another body.
func (tr *trial) event(old, now string) {
	tr.t.Helper()
	tr.announce("key", tr.swap(tr.receipt.Key.Event, old, now))
}

// grow adds events to the log.
func (tr *trial) grow(size int) {
	for n := len(tr.log.openings) + 1; n <= size; n++ {
		tr.log.add(fmt.Sprintf("evt_%d", n), "state", start+ledger.Time(n), "{}")
	}
}

// restOn lets the receipt rest on another event of the log.
func (tr *trial) restOn(index int64) {
	tr.t.Helper()
	leaf := tr.log.openings[index].Leaf
	hash := leaf.LeafHash()
	tr.content.Log.Index, tr.content.Log.Event = index, leaf.Event
	tr.content.Log.LeafHash = hex.EncodeToString(hash[:])
	tr.sign()
	tr.receipt.Proof, tr.receipt.Key.Proof = tr.log.prove(index), tr.log.prove(1)
}

// verify verifies the receipt with package receipt.
func (tr *trial) verify() error {
	tr.t.Helper()
	var trust receipt.Trust
	for _, vkey := range tr.vkeys {
		verifier := must.Get(note.NewVerifier(vkey))(tr.t)
		trust.Logs = append(trust.Logs, verifier)
	}
	if tr.pinned != "" {
		key, err := receipt.ParsePublicKey([]byte(tr.pinned))
		must.OK(tr.t, err)
		trust.Key = key
	}
	_, err := receipt.Verify(tr.receipt, trust, tr.want, tr.now)
	return err
}
