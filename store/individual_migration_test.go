package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/txn"
)

// Signers with common names, who were two people in the release before, stay two. The log says so.
func TestPairsOfAnUpgradeStayTwo(t *testing.T) {
	s, err := Open(t.Context(), unpackSchema(t, 19), Options{NoCopy: true})
	must.OK(t, err)
	defer s.Close()
	must.OK(t, s.BuildLogsOnce(t.Context()))
	must.OK(t, s.BuildLogsOnce(t.Context())) // has nothing to do
	must.OK(t, s.Settle(t.Context()))

	c, err := s.Commit(t.Context(), "acme", "api", "1111111111111111111111111111111111111111")
	must.OK(t, err)
	if c.State != ledger.Promotable {
		t.Errorf("the commit with the reviews of two is %s, want PROMOTABLE", c.State)
	}
	page, err := s.Events(t.Context(), "acme",
		events.EventFilter{Query: txn.Query{Limit: 100}, Types: []ledger.EventType{ledger.EventIdentity}})
	must.OK(t, err)
	var said []string
	for _, body := range page.Data {
		var e ledger.IdentityEvent
		must.OK(t, ledger.DecodeStrict(body, &e))
		if e.Kind == ledger.KindSigner {
			said = append(said, fmt.Sprint(e.DN, " ", e.Action, " ", e.Distinct))
		}
	}
	if want := []string{
		"cn=rita,ou=review,o=acme known true", "cn=rita,ou=people-dev,o=acme known true",
		"cn=bob,ou=review,o=acme known true", "cn=bobby,ou=review,o=acme known true",
	}; !slices.Equal(said, want) {
		t.Errorf("events %q, want %q", said, want)
	}
	review, err := s.LintFacts(t.Context(), "acme", "api", policy.Default())
	must.OK(t, err)
	if names := fmt.Sprint(review.SameNames); names != "[{bob@acme.example [cn=bob,ou=review,o=acme "+
		"cn=bobby,ou=review,o=acme]} {rita [cn=rita,ou=review,o=acme cn=rita,ou=people-dev,o=acme]}]" {
		t.Errorf("lint finds the names %s", names)
	}
	identities, err := s.Identities(t.Context(), "acme", txn.Query{Limit: 10})
	must.OK(t, err)
	for _, i := range identities.Data {
		if want := strings.Contains(i.DN, "cn=rita") || strings.Contains(i.DN, "cn=bob"); i.Distinct != want {
			t.Errorf("%s is distinct: %t, want %t", i.DN, i.Distinct, want)
		}
	}
	wantSameNames(t, s)
}

// wantSameNames checks that lint and doctor list names until an admin has said of all but one of those
// with a name that they are distinct, or of all that they are not.
func wantSameNames(t *testing.T, s *Store) {
	t.Helper()
	names := func() (list []string) {
		review, err := s.LintFacts(t.Context(), "acme", "api", policy.Default())
		must.OK(t, err)
		for _, n := range review.SameNames {
			list = append(list, n.Name)
		}
		glance, err := s.Glance(t.Context(), "v1.0.0", 10)
		must.OK(t, err)
		if (len(glance.SameNames) > 0) != (len(list) > 0) {
			t.Errorf("doctor lists the orgs %q, and lint the names %q", glance.SameNames, list)
		}
		return list
	}
	ids := make(map[string]string)
	page, err := s.Identities(t.Context(), "acme", txn.Query{Limit: 10})
	must.OK(t, err)
	for _, i := range page.Data {
		ids[i.DN] = i.ID
	}

	const bob, rita = "bob@acme.example", "rita"
	for _, step := range []struct {
		dn       string
		distinct bool
		want     []string
	}{
		{"cn=rita,ou=review,o=acme", false, []string{bob, rita}},
		{"cn=rita,ou=people-dev,o=acme", false, []string{bob}},
		{"cn=bob,ou=review,o=acme", true, nil},
	} {
		_, err := s.ChangeIdentity(t.Context(), "acme", ids[step.dn], identity.Change{Distinct: &step.distinct})
		must.OK(t, err)
		if got := names(); !slices.Equal(got, step.want) {
			t.Errorf("after %s is distinct: %t, names %q, want %q", step.dn, step.distinct, got, step.want)
		}
	}
}
