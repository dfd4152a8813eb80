package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// Signers with common names, who were two people in the release before, stay two. The log says so.
func TestPairsOfAnUpgradeStayTwo(t *testing.T) {
	s, err := Open(t.Context(), unpackSchema(t, 19), Options{NoCopy: true})
	check(t, err)
	defer s.Close()
	check(t, s.BuildLogsOnce(t.Context()))
	check(t, s.BuildLogsOnce(t.Context())) // has nothing to do
	check(t, s.Settle(t.Context()))

	c, err := s.Commit(t.Context(), "acme", "api", "1111111111111111111111111111111111111111")
	check(t, err)
	if c.State != ledger.Promotable {
		t.Errorf("the commit with the reviews of two is %s, want PROMOTABLE", c.State)
	}
	page, err := s.Events(t.Context(), "acme",
		EventFilter{Query: Query{Limit: 100}, Types: []ledger.EventType{ledger.EventIdentity}})
	check(t, err)
	var said []string
	for _, body := range page.Data {
		var e ledger.IdentityEvent
		check(t, ledger.DecodeStrict(body, &e))
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
	check(t, err)
	if names := fmt.Sprint(review.SameNames); names != "[{bob@acme.example [cn=bob,ou=review,o=acme "+
		"cn=bobby,ou=review,o=acme]} {rita [cn=rita,ou=review,o=acme cn=rita,ou=people-dev,o=acme]}]" {
		t.Errorf("lint finds the names %s", names)
	}
	identities, err := s.Identities(t.Context(), "acme", Query{Limit: 10})
	check(t, err)
	for _, i := range identities.Data {
		if want := strings.Contains(i.DN, "cn=rita") || strings.Contains(i.DN, "cn=bob"); i.Distinct != want {
			t.Errorf("%s is distinct: %t, want %t", i.DN, i.Distinct, want)
		}
	}
}
