package record

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store"
)

// put registers commits for a branch, with their objects.
func (g *graph) put(branch string, names ...string) {
	g.T.Helper()
	g.register(names...)
	for _, name := range names {
		g.Complete(g.ids[name], ledger.Registration{Branch: branch})
	}
}

// stacked returns the claims that a preview shows, such as "squash of s on t2 of topic".
func (g *graph) stacked() string {
	g.T.Helper()
	names := make(map[string]string, len(g.ids))
	for name, id := range g.ids {
		names[id] = name
	}
	var list []string
	must.OK(g.T, g.StackedClaims(g.T.Context(), func(c store.StackedClaim) {
		list = append(list, fmt.Sprintf("%s of %s on %s of %s", names[c.Commit], names[c.Claim.Source], names[c.Unmerged],
			c.Branch))
	}))
	return strings.Join(list, "; ")
}

// makeEarly makes all claims those of a release before claims named the commit of the mainline, until undo is called.
// Each is about a commit, on a parent.
func (g *graph) makeEarly(parents map[string]string) (undo func()) {
	g.T.Helper()
	g.CloseAll()
	g.Database.Exec(g.T, "UPDATE merges SET parent_id = 0, parent_state = 3")
	g.Other = nil
	g.Open(store.Options{})
	return func() {
		g.CloseAll()
		for name, parent := range parents {
			g.Database.Exec(g.T, fmt.Sprintf(`
UPDATE merges SET parent_state = 0, parent_id = (SELECT id FROM commits WHERE sha = '%s')
WHERE parent_id = 0 AND commit_id = (SELECT id FROM commits WHERE sha = '%s')`, g.ids[parent], g.ids[name]))
		}
	}
}

const onTopic = "squash of s on t2 of topic"

// Claims of an earlier release carry reviews that are not about what is below the branch. They are found by all that is
// known of the history: objects, registrations and claims. The mainline is m0, m1, and t1, t2 is a branch from m0.
func (s suite) TestClaimsOfStackedBranchesAreListed(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(a *attack)
		parent  string // on which s is squashed
		want    string
	}{
		"built on another branch": {func(a *attack) { a.commit("s", "Tom", "t2"); a.put("stack", "s") }, "m1", onTopic},
		"built on the branch's own commit": {
			func(a *attack) { a.commit("s", "Tom", "t2"); a.put("topic", "s") }, "m1", "",
		},
		"built on the mainline": {func(a *attack) { a.commit("s", "Tom", "m1"); a.put("stack", "s") }, "m1", ""},
		"registered with its parents alone": {func(a *attack) {
			a.commit("s", "Tom", "t2")
			a.Complete(a.ids["s"], ledger.Registration{Branch: "stack", Parents: []string{a.ids["t2"]}})
		}, "m1", onTopic},
		"registered with what leads there": {func(a *attack) {
			a.commit("unknown", "Tom", "t2")
			a.commit("s", "Tom", "unknown")
			a.put("stack", "s")
			a.Complete(a.ids["s"], ledger.Registration{Ancestors: []string{a.ids["t2"], a.ids["unknown"], a.ids["s"]}})
		}, "m1", onTopic},
		"the branch below was merged before": {func(a *attack) {
			a.commit("m2", "Max", "m1", "t2")
			a.commit("s", "Tom", "t2")
			a.put("main", "m2")
			a.put("stack", "s")
		}, "m2", ""},
		"the branch below was squashed before": {func(a *attack) {
			a.commit("m2", "Max", "m1")
			a.commit("s", "Tom", "t2")
			a.put("main", "m2")
			a.put("stack", "s")
			a.claim(a.mainline, attestation.Squashed, "m2", "t2", "m1")
		}, "m2", ""},
		"the mainline was merged to it, with a gap above": {func(a *attack) {
			a.commit("m2", "Max", "m1", "t2")
			a.commit("unknown", "Max", "m2")
			a.commit("m4", "Max", "unknown")
			a.commit("s", "Tom", "m2")
			a.put("main", "m2", "m4")
			a.put("stack", "s")
		}, "m4", ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := s.newAttack(t)
			a.put("topic", "t2")
			test.prepare(a)
			a.commit("squash", "Max", test.parent)
			a.put("main", "squash")
			a.claim(a.mainline, attestation.Squashed, "squash", "s", test.parent)
			defer a.makeEarly(map[string]string{"squash": test.parent, "m2": "m1"})()
			if got := a.stacked(); got != test.want {
				t.Errorf("listed: %q, want %q", got, test.want)
			}
		})
	}
}

// A listed claim ends when its signer claims again, when the signer's key is distrusted from its recording on, and when
// the contract names other signers.
func (s suite) TestWhatEndsAClaimOfAStackedBranch(t *testing.T) {
	for name, end := range map[string]func(a *attack, recorded ledger.Time){
		"the same key claims again": func(a *attack, _ ledger.Time) {
			a.claim(a.mainline, attestation.Squashed, "squash", "s", "m1")
		},
		"the key is distrusted since then": func(a *attack, recorded ledger.Time) {
			id := a.IdentityOf(a.mainline.DN).ID
			must.OK(a.T, a.DistrustIdentity(a.T.Context(), "acme", id, recorded))
		},
		"the contract names another key": func(a *attack, _ ledger.Time) {
			next := strings.ReplaceAll(updateContract, "cn=mainline,", "cn=next,")
			contract := must.Get(policy.Parse([]byte(next)))(a.T)
			_, err := a.SetPolicy(a.T.Context(), "acme", "api", contract, 0, "host")
			must.OK(a.T, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := s.newAttack(t)
			a.put("topic", "t2")
			a.commit("s", "Tom", "t2")
			a.commit("squash", "Max", "m1")
			a.put("stack", "s")
			a.put("main", "squash")
			a.claim(a.mainline, attestation.Squashed, "squash", "s", "m1")
			defer a.makeEarly(map[string]string{"squash": "m1"})()
			recorded := a.ReadCommit(a.ids["squash"]).Merges[0].RecordedAt
			if got := a.stacked(); got != onTopic {
				t.Errorf("listed: %q, want %q", got, onTopic)
			}
			end(a, recorded)
			if got := a.stacked(); got != "" {
				t.Errorf("still listed: %q", got)
			}
		})
	}
}
