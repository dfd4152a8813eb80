package rederive

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
)

// What the ledger shows of a commit must be what the log has.
func TestKnown(t *testing.T) {
	h := newHistory(t)
	unregistered := ledger.Commit{}
	unregistered.SHA = theCommit
	must.OK(t, h.Known(&unregistered))
	c := byAnn()
	if err := h.Known(&c); !errors.Is(err, verify.ErrNotLogged) {
		t.Errorf("a commit without an event: %v", err)
	}
	h.register(c)
	c.Author.Name = "eve"
	if err := h.Known(&c); err == nil || errors.Is(err, verify.ErrNotLogged) {
		t.Errorf("another author: %v", err)
	}
	if err := h.Known(&unregistered); err == nil {
		t.Error("a commit of which the ledger shows nothing")
	}
}

func TestContractsAreThoseInTheLog(t *testing.T) {
	h := newHistory(t, tests, strict)
	shown := h.contracts[2]
	for name, e := range map[string]ledger.PolicyEvent{
		"another digest": {Version: 2, Digest: "sha256:00", Rules: shown.Rules},
		"other rules":    {Version: 2, Digest: shown.Digest()},
	} {
		if err := h.Policy(e); err == nil {
			t.Error(name)
		}
	}
}

// An identity may attest what it was allowed to when the attestation was recorded.
func TestSignersMayAttest(t *testing.T) {
	h := newHistory(t)
	sum := keyOf("ci")
	key := hex.EncodeToString(sum[:])
	allow := func(id, key string, may ...string) {
		must.OK(t, h.Identity(ledger.IdentityEvent{IdentityID: id, Kind: "key", DN: dn("ci"), Key: key, May: may}))
	}
	signer := must.Get(identity.ParseDN(dn("ci")))(t)
	attest := func(id, predicate, said string) error {
		a := &attestation.Attestation{Commit: theCommit, Signer: identity.Signer{DN: signer, Key: sum, Identity: id}}
		a.Predicate = predicate
		return h.Attestation(ledger.AttestationEvent{Attestation: "att_1", Predicate: said}, a)
	}

	allow("idn_ci", key, "test:*")
	for _, test := range []struct {
		id, predicate, said string
		isRefused           bool
	}{
		{"idn_ci", "test:go", "test:go", false},
		{"idn_ci", "review:code", "review:code", true},
		{"key 1 of the file", "review:code", "review:code", true},
		{"idn_ci", "review:code", "https://example.com/review", false}, // by an earlier release
	} {
		if err := attest(test.id, test.predicate, test.said); (err != nil) != test.isRefused {
			t.Errorf("%+v: %v", test, err)
		}
	}
	allow("idn_other", "00", "review:*")
	if err := attest("idn_ci", "review:code", "review:code"); err == nil {
		t.Error("what an identity with another key may attest counts")
	}
	allow("idn_same", key, "review:*")
	if err := attest("idn_ci", "review:code", "review:code"); err != nil {
		t.Errorf("what an identity with the same key and name may attest does not count: %v", err)
	}
	h = newHistory(t)
	h.signers, h.holders = identity.NewSigners(), map[string][]string{}
	if err := attest("idn_ci", "review:code", "review:code"); err != nil {
		t.Errorf("an identity that is logged later: %v", err)
	}
}

func TestNeeds(t *testing.T) {
	h := newHistory(t)
	h.register(withTree("beef"))
	h.register(withTree(theCommit))
	h.register(withTree(theCommit)) // a further event about it
	got := fmt.Sprint(h.Needs(theCommit), h.Needs("beef"), h.Needs("other"))
	if got != "[c0ffee beef] [beef c0ffee] [other]" {
		t.Errorf("needs %s", got)
	}
	if h.IsKnown("other") || !h.IsKnown("beef") {
		t.Error("beef is known, and other is not")
	}
}

// What carries is limited as in the ledger.
func TestBounds(t *testing.T) {
	for name, fill := range map[string]func(h *history){
		"too many commits": func(h *history) {
			for n := range maxSources + 1 {
				h.register(withTree(fmt.Sprint("beef", n)))
			}
		},
		"too many attestations": func(h *history) {
			h.deploy()
			for range maxJudged + 1 {
				h.pass("ci", "lint:go")
			}
			h.attest(theCommit, "ops", "deploy:prod", ledger.Fail, nil)
			h.enter(promotable)
		},
		"too much evidence": func(h *history) {
			h.register(withTree("beef"))
			for n := range policy.MaxTopics + 1 {
				h.attest("beef", "ci", fmt.Sprint("test:", n), ledger.Pass, nil)
			}
		},
	} {
		h := newHistory(t)
		h.register(withTree(theCommit))
		fill(h)
		if _, why, err := h.Check(theCommit, "main", h.now.Add(time.Hour)); err != nil || !strings.Contains(why, name) {
			t.Errorf("%s: %q, %v", name, why, err)
		}
	}
}
