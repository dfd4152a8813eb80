package rederive

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/facts"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// A history is the log of a repo with the signers ci, rev, ops and ann, an hour ago. Each event
// is a second after the one before.
type history struct {
	*Replay
	t    testing.TB
	now  ledger.Time
	last int
}

const start = ledger.Time(1_800_000_000_000)

// theCommit is the one that histories are about.
const theCommit = "c0ffee"

func newHistory(t testing.TB, contracts ...string) *history {
	t.Helper()
	versions := map[int]policy.Contract{1: policy.Default()}
	for i, text := range contracts {
		contract := must.Get(policy.Parse([]byte(text)))(t)
		versions[i+1] = contract
	}
	h := &history{Replay: New(versions), t: t, now: start}
	for _, name := range []string{"ci", "rev", "ops", "ann"} {
		h.trust(name, name, "")
	}
	h.now = h.now.Add(time.Hour)
	return h
}

// tick returns the time of the next event.
func (h *history) tick() ledger.Time {
	h.now = h.now.Add(time.Second)
	return h.now
}

// dn returns the DN of a name, or of a name and an ou, such as ci/y.
func dn(name string) string {
	cn, ou, ok := strings.Cut(name, "/")
	if !ok {
		ou = "x"
	}
	return "cn=" + cn + ",ou=" + ou + ",o=acme"
}

// keyOf returns the digest of the key with a name.
func keyOf(name string) (sum [sha256.Size]byte) { return sha256.Sum256([]byte(name)) }

// trust adds an identity with a key, which are named by the same name if they are one's own.
func (h *history) trust(name, key, email string) {
	h.t.Helper()
	sum := keyOf(key)
	must.OK(h.t, h.Identity(ledger.IdentityEvent{IdentityID: "idn_" + name, Kind: "key", DN: dn(name), Email: email,
		Key: hex.EncodeToString(sum[:]), Timestamp: h.tick()}))
}

// distrust distrusts an identity since the given time, or from the beginning.
// setDistinct says whether the owner of a name is another person than others with this name.
func (h *history) setDistinct(name string, distinct bool) {
	h.t.Helper()
	must.OK(h.t, h.Identity(ledger.IdentityEvent{IdentityID: dn(name), Kind: ledger.KindSigner, DN: dn(name),
		Distinct: distinct, Timestamp: h.tick()}))
}

func (h *history) distrust(name string, since ...ledger.Time) {
	h.t.Helper()
	since = append(since, start)
	sum := keyOf(name)
	must.OK(h.t, h.Identity(ledger.IdentityEvent{IdentityID: "idn_" + name, Kind: "key", DN: dn(name),
		Key: hex.EncodeToString(sum[:]), DistrustedSince: since[0], Timestamp: h.tick()}))
}

// attest adds an attestation, which change may change.
func (h *history) attest(commit, name, predicate string, status ledger.Status, change func(*attestation.Attestation)) {
	h.t.Helper()
	signer := must.Get(identity.ParseDN(dn(name)))(h.t)
	h.last++
	a := &attestation.Attestation{Commit: commit, PredicateType: "https://acme.example/x",
		Signer:  identity.Signer{DN: signer, Key: keyOf(name), Identity: "idn_" + name},
		Payload: []byte(`{"predicate":{"a":1}}`)}
	a.Predicate, a.Result.Status = predicate, status
	if change != nil {
		change(a)
	}
	e := ledger.AttestationEvent{Attestation: fmt.Sprintf("att_%03d", h.last), Base: a.Base, Timestamp: h.tick()}
	must.OK(h.t, h.Attestation(e, a))
}

// since makes an attestation one about the changes since a base.
func since(base string) func(*attestation.Attestation) {
	return func(a *attestation.Attestation) { a.Base = base }
}

func (h *history) pass(name, predicate string) {
	h.attest(theCommit, name, predicate, ledger.Pass, nil)
}

// enter adds state events.
func (h *history) enter(states ...ledger.State) {
	for _, to := range states {
		h.State(ledger.StateEvent{Commit: theCommit, To: to, Timestamp: h.tick()})
	}
}

// register adds what is known of a commit, which the ledger shows too.
func (h *history) register(c ledger.Commit) {
	h.t.Helper()
	known := facts.Of(&c)
	h.Commit(ledger.CommitEvent{Commit: c.SHA, Facts: known.Digest(), Tree: c.Tree, Timestamp: h.tick()})
	must.OK(h.t, h.Known(&c))
}

// apply adds the event of a version of the contract.
func (h *history) apply(version int) {
	h.t.Helper()
	c := h.contracts[version]
	must.OK(h.t, h.Policy(ledger.PolicyEvent{Version: version, Digest: c.Digest(), Rules: c.Rules, Timestamp: h.tick()}))
}

func byAnn() ledger.Commit {
	var c ledger.Commit
	c.SHA, c.Author = theCommit, ledger.Author{Name: "ann", Email: "ann@acme.example"}
	return c
}

func withTree(sha string) ledger.Commit {
	c := byAnn()
	c.SHA, c.Tree, c.Proven = sha, "7ee", true
	return c
}

const (
	draft, validating, attested = ledger.Draft, ledger.Validating, ledger.Attested
	promotable, deployed        = ledger.Promotable, ledger.Deployed
	strict                      = `{"requirements":[{"state":"ATTESTED","predicate":"test:js"}]}`
	tests                       = `{"requirements":[{"state":"ATTESTED","predicate":"test:*"}]}`
	confirming                  = `{"requirements":[{"state":"ATTESTED","predicate":"review:*","passkey":true}]}`
	expiring                    = `{"requirements":[{"state":"ATTESTED","predicate":"test:*","max_age":"1h"}]}`
	blocking                    = `{"requirements":[{"state":"PROMOTABLE","predicate":"test:*"}],"radar":{"block":"HIGH"}}`
	merging                     = `{"requirements":[{"state":"ATTESTED","predicate":"test:*","carry":["merge"],` +
		`"carry_signers":["cn=ci,o=acme"]}]}`
	sure, later = "", "may still be deriving"
	wrong       = "its evidence makes it"
)

// test brings the commit, which is tested, to a state.
func (h *history) test(to ledger.State) {
	h.register(byAnn())
	h.pass("ci", "test:go")
	h.enter(to)
}

// review brings the commit, which is tested and reviewed, to PROMOTABLE.
func (h *history) review() {
	h.register(byAnn())
	h.pass("ci", "test:go")
	h.pass("rev", "review:code")
	h.enter(promotable)
}

// deploy brings the commit to DEPLOYED under the default policy.
func (h *history) deploy() {
	h.register(byAnn())
	h.pass("ci", "test:go")
	h.enter(validating, attested)
	h.pass("rev", "review:code")
	h.enter(promotable)
	h.pass("ops", "deploy:prod")
	h.enter(deployed)
}
