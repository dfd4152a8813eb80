package check_test

import (
	"crypto/ed25519"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// apply applies a version of the contract of api, in which requirements follow those of tests and reviews.
func (w *writer) apply(version int, requirements string) {
	w.t.Helper()
	contract, err := policy.Parse([]byte(`{"requirements":[{"state":"ATTESTED","predicate":"test:*"},
		{"state":"PROMOTABLE","predicate":"review:*","covers":"change"},` + requirements + `],"radar":{"enabled":false}}`))
	must.OK(w.t, err)
	_, err = w.SetPolicy(w.t.Context(), "acme", "api", contract, version, "host")
	must.OK(w.t, err)
}

// tested registers a commit with a number, and records that its tests pass.
func (w *writer) tested(parent string, n int) (id string) {
	w.t.Helper()
	id, raw := storetest.ObjectOn(parent, n, "Dora", n)
	_, _, err := w.Register(w.t.Context(), "acme", "api", id, ledger.Registration{Object: raw})
	must.OK(w.t, err)
	w.say(id, buildDN, "test:go", ledger.Pass)
	return id
}

// reviewSince records a review of the changes of a commit since a base.
func (w *writer) reviewSince(base, commit string) {
	w.t.Helper()
	review, err := attestation.NewStatement("acme/api", commit, attestation.ResultPredicate{Predicate: "review:code",
		Result: ledger.Result{Status: ledger.Pass}, Base: base})
	must.OK(w.t, err)
	w.sign(reviewDN, review)
}

// newDeliveryDatabase returns a database in which deployments do not count: one by its signer, before the policy had
// asked what deployments ship, and those of two commits over a gap. In the end, one of the two is deployed.
func newDeliveryDatabase(t testing.TB) database {
	t.Helper()
	ctx := t.Context()
	d := database{path: storetest.NewFile(t)}
	d.keys = d.path + "-keys"
	s := must.Get(store.Open(ctx, d.path, store.Options{}))(t)
	w := &writer{Store: s, t: t, keys: make(map[string]ed25519.PrivateKey)}
	must.OK(t, w.Settle(ctx))
	must.Get(w.CreateOrg(ctx, "acme"))(t)
	must.Get(w.CreateRepo(ctx, "acme", ledger.NewRepo{Name: "api"}, "host"))(t)
	w.addSigner(buildDN)
	w.addSigner(reviewDN)

	w.apply(1, `{"state":"DEPLOYED","predicate":"deploy:prod","signers":["ou=ci"]}`)
	base := w.tested(sha(900), 1)
	inner := w.tested(base, 2)
	head, other := w.tested(inner, 3), w.tested(inner, 4)
	w.say(base, reviewDN, "review:code", ledger.Pass)
	w.say(base, reviewDN, "deploy:prod", ledger.Pass)
	w.say(base, buildDN, "deploy:prod", ledger.Pass)
	w.apply(2, `{"state":"DEPLOYED","predicate":"deploy:prod","signers":["ou=ci"],"delivery":true}`)

	w.reviewSince(inner, head)
	w.reviewSince(inner, other)
	w.say(head, buildDN, "lint:go", ledger.Pass)
	for n, commit := range []string{other, head, head, head} {
		if n == 3 {
			w.reviewSince(base, inner)
		}
		deployed, err := attestation.NewStatement("acme/api", commit, attestation.ResultPredicate{
			Predicate: "deploy:prod", Result: ledger.Result{Status: ledger.Pass, DurationMS: int64(n)}})
		must.OK(t, err)
		w.sign(buildDN, deployed)
	}
	must.OK(t, w.Settle(ctx))
	d.sign(t, s)
	must.OK(t, w.Close())
	return d
}

// A deployment that did not count for what it ships is no problem, and whatever else a row says of the state of its
// commit is found.
func TestWhatADeploymentShipped(t *testing.T) {
	d := newDeliveryDatabase(t)
	if lines := d.problems(t); len(lines) > 0 {
		t.Fatalf("an intact database has these problems:\n%s", strings.Join(lines, "\n"))
	}
	const set = "UPDATE attestations SET while_promotable = "
	attestation := func(predicate, order string) string {
		return " WHERE id = (SELECT a.id FROM attestations a JOIN predicates p ON p.id = a.predicate_id WHERE p.name = '" +
			predicate + "' ORDER BY a.id " + order + ")"
	}
	unlike := []string{"record acme commit api@", " was not recorded in the state of the commit that its row says"}
	for _, test := range []struct {
		name, change string
		want         []string
	}{
		{"one that counted, as if it had not", set + "0" + attestation("deploy:prod", "DESC LIMIT 1"), unlike},
		{"one of another policy, as if it had shipped too much", set + "0" + attestation("deploy:prod", "LIMIT 1"), unlike},
		{"a result that is no deployment", set + "0" + attestation("lint:go", "LIMIT 1"), unlike},
		{"a test of a draft, as if that was PROMOTABLE", set + "1" + attestation("test:go", "LIMIT 1"), unlike},
		{"one over a gap, as if there was none", set + "1" + attestation("deploy:prod", "LIMIT 1 OFFSET 2"),
			[]string{"derivation acme commit api@", ": it is PROMOTABLE, and its evidence makes it DEPLOYED"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			lines := d.copy(t, run(test.change)).problems(t)
			if !slices.ContainsFunc(lines, func(line string) bool { return containsAll(line, test.want) }) {
				t.Errorf("got the problems\n%s\nwant %q", strings.Join(lines, "\n"), test.want)
			}
		})
	}
}
