package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A contract that an earlier release has stored may be larger than a new one. It decides as before, is
// shown to doctor, and can be replaced by one that is not larger.
func TestLargeContracts(t *testing.T) {
	w := newTwin(t)
	defer w.Close()
	sized := func(requirements int) policy.Contract {
		list := make([]string, requirements)
		for i := range list {
			list[i] = fmt.Sprintf(`{"state":"ATTESTED","predicate":"test:%d","signers":["cn=ci"]}`, i%2)
		}
		return must.Get(policy.Parse([]byte(`{"requirements":[` + strings.Join(list, ",") + `]}`)))(t)
	}
	set := func(requirements int) error {
		_, err := w.SetPolicy(t.Context(), "acme", "api", sized(requirements), 0, "host")
		return err
	}
	wantRefused := func(err error) {
		t.Helper()
		if e, ok := errors.AsType[*ledger.Error](err); !ok || e.Code != ledger.CodeInvalidContract {
			t.Errorf("got %v, want invalid_contract", err)
		}
	}
	wantLarge := func(want ...string) {
		t.Helper()
		g, err := w.Glance(t.Context(), "v1.0.0", 10)
		if err != nil || !slices.Equal(g.LargeContracts, want) {
			t.Errorf("large contracts %q, %v; want %q", g.LargeContracts, err, want)
		}
	}

	wantRefused(set(51))
	wantLarge()
	must.OK(t, w.db.Write(t.Context(), sqldb.Write{Do: func(c *sqldb.Conn) error {
		large := sized(60)
		_, err := c.Exec("UPDATE policies SET contract = ?, digest = ?", large.Canonical(), large.Digest())
		if err == nil {
			_, err = c.Exec("UPDATE repos SET policy_digest = ?", large.Digest())
		}
		return err
	}}))
	wantLarge("acme/api")

	rec, _, err := w.Record(t.Context(), "acme", "api", stated("ci", 0, "test:0", ledger.Pass).Attestation, 0)
	must.OK(t, err)
	c, err := w.Commit(t.Context(), "acme", "api", rec.Commit)
	if err != nil || len(c.Requirements) != 60 || !c.Requirements[0].Met || c.Requirements[1].Met {
		t.Errorf("%d requirements, %v", len(c.Requirements), err)
	}

	_, err = w.Simulate(t.Context(), "acme", "api", sized(61))
	wantRefused(err)
	wantRefused(set(61))
	must.OK(t, set(60))
	must.OK(t, set(50))
	wantRefused(set(51))
	wantLarge()
}
