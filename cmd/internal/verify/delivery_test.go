package verify

import (
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// A host that changes on what it depends whether a deployment counts, and lets its own server record it, is found in a
// clone.
func TestDeliveriesThatDoNotFollow(t *testing.T) {
	for name, test := range map[string]struct {
		before, after string // statements that change the database before the deployment, and after it
		want          ledger.State
		status        verify.Status
		detail        string
	}{
		"nothing": {before: "SELECT 1", after: "SELECT 1", want: ledger.Promotable, status: verify.OK, detail: "4 commits"},
		"what the contract asks for": {
			before: replaceContract(`"delivery":true`, `"delivery": false`),
			after:  replaceContract(`"delivery": false`, `"delivery":true`),
			want:   ledger.Deployed, status: verify.Failed, detail: "it was DEPLOYED at ",
		},
		"what ran": {
			before: "UPDATE deployments SET commit_id = commit_id + 1",
			after:  "UPDATE deployments SET commit_id = commit_id - 1 WHERE commit_id = (SELECT max(id) - 1 FROM commits)",
			want:   ledger.Deployed, status: verify.Failed, detail: "it was DEPLOYED at ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			_, rev := h.addSigner("cn=rev,ou=x,o=acme")
			_, ops := h.addSigner("cn=ops,ou=x,o=acme")
			h.setPolicy(`{"requirements":[
				{"state":"PROMOTABLE","predicate":"review:*","exclude_author":true,"covers":"change"},
				{"state":"DEPLOYED","predicate":"deploy:prod","delivery":true}]}`)
			object, base := objectOf(strings.Repeat("ab", 20), "ann")
			h.register(base, ledger.Registration{Object: object})
			inner, object := storetest.ObjectOn(base, 2, "ann", 2)
			h.register(inner, ledger.Registration{Object: object})
			head, object := storetest.ObjectOn(inner, 3, "ann", 3)
			h.register(head, ledger.Registration{Object: object})
			b := &branch{h: h}

			rev()
			h.record(base, "review:code", ledger.Pass)
			must.Get(h.send(b.review(head, inner)))(t)
			ops()
			h.record(base, "deploy:prod", ledger.Pass)
			h.change(test.before)
			h.record(head, "deploy:prod", ledger.Pass)
			h.change(test.after)
			must.OK(t, h.store.Settle(t.Context()))
			h.sign()

			record := must.Get(h.admin.Commit(t.Context(), "acme", "api", head))(t)
			if record.State != test.want {
				t.Fatalf("it is %s, want %s", record.State, test.want)
			}
			r := inClone(rederiving(t), h).verify(newSite(t, h), repo(t))
			want(t, r, verify.CheckDerivation, test.status, test.detail)
			r = rederiving(t).verify(newSite(t, h), repo(t))
			wantVerified(t, r)
			want(t, r, verify.CheckDerivation, verify.NotChecked, "run it in a clone of the repo")
		})
	}
}
