package record

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// attestationIDs returns the ids of all pages of a list of attestations.
func (fx *fixture) attestationIDs(f store.AttestationFilter) []string {
	fx.T.Helper()
	var ids []string
	for {
		list, err := fx.Attestations(fx.T.Context(), "acme", "api", f)
		must.OK(fx.T, err)
		for _, rec := range list.Data {
			ids = append(ids, rec.ID)
		}
		if f.Cursor = list.NextCursor; f.Cursor == "" {
			return ids
		}
	}
}

func (s suite) TestAttestationFilters(t *testing.T) {
	fx := s.newFixture(t)
	signers := []*storetest.Signer{fx.NewSigner("cn=ci,ou=build,o=acme"), fx.NewSigner("cn=ann,ou=dev,o=acme"),
		fx.NewSigner("cn=ci,ou=nightly,o=acme")}
	predicates := []string{"test:go", "test:js", "testing", "review:code"}
	var all []ledger.AttestationRecord
	for i := range 60 {
		fx.Clock.Advance(time.Second)
		status := []ledger.Status{ledger.Pass, ledger.Fail}[i%5/4]
		all = append(all, signers[i%3].Attest(sha(i%7), predicates[i%4], status))
	}
	since := all[30].RecordedAt

	tests := []struct {
		name   string
		filter store.AttestationFilter
		want   func(ledger.AttestationRecord) bool
	}{
		{"no filter", store.AttestationFilter{}, func(ledger.AttestationRecord) bool { return true }},
		{"predicate", store.AttestationFilter{Predicate: "test:go"},
			func(r ledger.AttestationRecord) bool { return r.Predicate == "test:go" }},
		{"predicate prefix", store.AttestationFilter{Predicate: "test:*"},
			func(r ledger.AttestationRecord) bool { return r.Predicate == "test:go" || r.Predicate == "test:js" }},
		{"unknown predicate", store.AttestationFilter{Predicate: "none"},
			func(ledger.AttestationRecord) bool { return false }},
		{"identity by DN", store.AttestationFilter{Identity: "cn=ci,ou=build,o=acme"},
			func(r ledger.AttestationRecord) bool { return r.Identity == "cn=ci,ou=build,o=acme" }},
		{"identity by plain name", store.AttestationFilter{Identity: "ci"},
			func(r ledger.AttestationRecord) bool { return r.Signer == "ci" }},
		{"since", store.AttestationFilter{Since: since},
			func(r ledger.AttestationRecord) bool { return r.RecordedAt >= since }},
		{"status", store.AttestationFilter{Status: ledger.Fail},
			func(r ledger.AttestationRecord) bool { return r.Result.Status == ledger.Fail }},
		{"commit", store.AttestationFilter{Commit: sha(3)},
			func(r ledger.AttestationRecord) bool { return r.Commit == sha(3) }},
		{"all filters", store.AttestationFilter{Predicate: "test*", Identity: "ci", Since: since, Status: ledger.Pass},
			func(r ledger.AttestationRecord) bool {
				return r.Predicate != "review:code" && r.Signer == "ci" && r.RecordedAt >= since && r.Result.Status == ledger.Pass
			}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			fx.wantFiltered(t, test.filter, all, test.want)
		})
	}
}

// wantFiltered checks that a filter lists the records of all that match.
func (fx *fixture) wantFiltered(
	t *testing.T, f store.AttestationFilter, all []ledger.AttestationRecord, matches func(ledger.AttestationRecord) bool,
) {
	t.Helper()
	var want []string
	for _, rec := range all {
		if matches(rec) {
			want = append(want, rec.ID)
		}
	}
	for _, limit := range []int{1, 7, 500} {
		f.Limit, f.Ascending = limit, true
		if got := fx.attestationIDs(f); !slices.Equal(got, want) {
			t.Errorf("oldest first, limit %d: got %v, want %v", limit, got, want)
		}
		f.Ascending = false
		got := fx.attestationIDs(f)
		slices.Reverse(got)
		if !slices.Equal(got, want) {
			t.Errorf("newest first, limit %d: got %v, want %v", limit, got, want)
		}
	}
}

// A filter by predicate type finds the attestations of the type, whatever its predicate
// is called. A predicate with :// is such a filter.
func (s suite) TestAttestationsAreFilteredByPredicateType(t *testing.T) {
	fx := s.newFixture(t)
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	const own, vulns = attestation.ResultPredicateType, "https://in-toto.io/attestation/vulns"
	const unknown, many = "https://a.example/", "https://many.example/"
	names := [][2]string{ // of the predicate, and of its type
		{"test:go", own}, {"scan:x", vulns + "/v0.1"}, {"scan:x", vulns + "/v0.2"}, {unknown + "x", unknown + "x"},
		{unknown + "*", unknown + "*"}, {vulns + "/v1", vulns + "/v1"}, // the last one is of an earlier release
	}
	for i := range 60 { // more than a page reads by their own index
		one := fmt.Sprintf("%s%02d", many, i)
		names = append(names, [2]string{one, one})
	}

	var all []ledger.AttestationRecord
	for i := range 2 * len(names) {
		name := names[i%len(names)]
		status := []ledger.Status{ledger.Pass, ledger.Recorded}[i/len(names)]
		fx.Clock.Advance(time.Second)
		a, version := ci.Sign(sha(i%3), "x", ledger.Pass, fmt.Sprint(i))
		a.Predicate, a.PredicateType, a.Result.Status = name[0], name[1], status
		rec, _, err := fx.Record(t.Context(), "acme", "api", a, version)
		must.OK(t, err)
		all = append(all, rec)
	}

	patterns := []string{"", "*", "none", "none*", "https://none.example/x", "https://none.example/*", own, vulns + "*",
		vulns + "/v0.2", vulns, unknown + "x", unknown + "*", many + "07", many + "*", "https://*"}
	for _, pattern := range patterns {
		for _, predicate := range []string{"", "test:go", "scan:*", "h*", unknown + "x", vulns + "*", many + "*"} {
			for _, f := range []store.AttestationFilter{
				{}, {Commit: sha(1)}, {Status: ledger.Recorded}, {Identity: "ci", Status: ledger.Pass},
			} {
				f.Predicate, f.PredicateType = predicate, pattern
				t.Run(fmt.Sprintf("%+v", f), func(t *testing.T) {
					fx.wantFiltered(t, f, all, func(r ledger.AttestationRecord) bool {
						byPredicate := r.Predicate
						if strings.Contains(predicate, "://") {
							byPredicate = r.PredicateType
						}
						return like(byPredicate, predicate) && like(r.PredicateType, pattern) &&
							(f.Commit == "" || f.Commit == r.Commit) && (f.Status == "" || f.Status == r.Result.Status)
					})
				})
			}
		}
	}
}

// like reports whether a name matches the pattern of a filter.
func like(name, pattern string) bool {
	prefix, isPrefix := strings.CutSuffix(pattern, "*")
	return pattern == "" || name == pattern || isPrefix && strings.HasPrefix(name, prefix)
}

func (s suite) TestACursorIsStableWhileRowsAreInserted(t *testing.T) {
	fx := s.newFixture(t)
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	var want []string
	for i := range 20 {
		want = append(want, ci.Attest(sha(i), "test:go", ledger.Pass).ID)
	}
	slices.Reverse(want)

	f := store.AttestationFilter{Query: store.Query{Limit: 6}, Predicate: "test:go"}
	var got []string
	for {
		list, err := fx.Attestations(t.Context(), "acme", "api", f)
		must.OK(t, err)
		for _, rec := range list.Data {
			got = append(got, rec.ID)
		}
		if f.Cursor = list.NextCursor; f.Cursor == "" {
			break
		}
		ci.Attest(sha(100+len(got)), "test:go", ledger.Pass)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func (s suite) TestAnInvalidCursorIsRejected(t *testing.T) {
	fx := s.newFixture(t)
	for _, cursor := range []string{"!", "bm9uZQ", "MQ", "MS4y.", "OTk5OTk5OTk5OTk5OTk5OTk5OTk5OS4x"} {
		f := store.AttestationFilter{Query: store.Query{Limit: 1, Cursor: cursor}}
		_, err := fx.Attestations(t.Context(), "acme", "api", f)
		storetest.WantCode(t, err, ledger.CodeInvalidCursor)
	}
}

func (s suite) TestCommitPrefixesAndFilters(t *testing.T) {
	fx := s.newFixture(t)
	ann, bob := ledger.Author{Name: "Ann", Email: "ann@acme.example"},
		ledger.Author{Name: "Bob", Email: "bob@acme.example"}
	register := func(sha string, n ledger.Registration) {
		_, _, err := fx.Register(t.Context(), "acme", "api", sha, n)
		must.OK(t, err)
	}
	register("aaaaaaa1"+sha(0)[8:], ledger.Registration{Branch: "main", Author: ann})
	register("aaaaaaa2"+sha(0)[8:], ledger.Registration{Branch: "fix", Author: bob})
	register("bbbbbbbb"+sha(0)[8:], ledger.Registration{Branch: "fix", Author: ann})
	register("ccccccc1"+sha(0)[8:], ledger.Registration{
		Branch: "discount", Author: ledger.Author{Name: "JÖRG 50%_Off!"}})
	fx.NewSigner("cn=ci,ou=build,o=acme").Attest("bbbbbbbb"+sha(0)[8:], "test:go", ledger.Pass)

	if got := fx.ReadCommit("aaaaaaa2"); got.Branch != "fix" || got.Target != "main" {
		t.Errorf("got %+v, want the second commit, with target main", got)
	}
	_, err := fx.Commit(t.Context(), "acme", "api", "aaaaaaa")
	storetest.WantCode(t, err, ledger.CodeAmbiguousCommit)
	_, err = fx.Commit(t.Context(), "acme", "api", "ddddddd")
	storetest.WantCode(t, err, ledger.CodeNotFound)

	attested := ledger.Attested
	tests := []struct {
		name   string
		filter store.CommitFilter
		want   string
	}{
		{"no filter", store.CommitFilter{}, "[ccccccc1 bbbbbbbb aaaaaaa2 aaaaaaa1]"},
		{"branch", store.CommitFilter{Branch: "fix"}, "[bbbbbbbb aaaaaaa2]"},
		{"author by name", store.CommitFilter{Author: "Ann"}, "[bbbbbbbb aaaaaaa1]"},
		{"author by e-mail", store.CommitFilter{Author: "bob@acme.example"}, "[aaaaaaa2]"},
		{"state", store.CommitFilter{State: &attested}, "[bbbbbbbb]"},
		{"text in a branch", store.CommitFilter{Text: "FI"}, "[bbbbbbbb aaaaaaa2]"},
		{"text in a name", store.CommitFilter{Text: "ann"}, "[bbbbbbbb aaaaaaa1]"},
		{"text in an e-mail", store.CommitFilter{Text: "BOB@acme"}, "[aaaaaaa2]"},
		{"text of an id", store.CommitFilter{Text: "AAAAAAA"}, "[aaaaaaa2 aaaaaaa1]"},
		{"text within an id", store.CommitFilter{Text: "aaaa2"}, "[]"},
		{"text across fields", store.CommitFilter{Text: "fixAnn"}, "[]"},
		{"text and state", store.CommitFilter{Text: "fix", State: &attested}, "[bbbbbbbb]"},
		{"text and branch", store.CommitFilter{Text: "bob", Branch: "fix"}, "[aaaaaaa2]"},
		{"text and author", store.CommitFilter{Text: "fix", Author: "Ann"}, "[bbbbbbbb]"},
		{"text with a percent sign", store.CommitFilter{Text: "50%_o"}, "[ccccccc1]"},
		{"percent sign", store.CommitFilter{Text: "%"}, "[ccccccc1]"},
		{"underscore", store.CommitFilter{Text: "_"}, "[ccccccc1]"},
		{"escape character", store.CommitFilter{Text: "!"}, "[ccccccc1]"},
		{"escape character and percent sign", store.CommitFilter{Text: "!%"}, "[]"},
		{"any text between", store.CommitFilter{Text: "a%n"}, "[]"},
		{"any letter", store.CommitFilter{Text: "a_n"}, "[]"},
		{"letters beyond ASCII", store.CommitFilter{Text: "ÖRG"}, "[ccccccc1]"},
		{"letters beyond ASCII in another case", store.CommitFilter{Text: "örg"}, "[]"},
		{"a zero byte", store.CommitFilter{Text: "\x00"}, "[]"},
		{"text before a zero byte", store.CommitFilter{Text: "fix\x00"}, "[]"},
		{"author with a zero byte", store.CommitFilter{Author: "ann\x00"}, "[]"},
		{"part of an author", store.CommitFilter{Author: "AN"}, "[bbbbbbbb aaaaaaa1]"},
		{"part of an address", store.CommitFilter{Author: "ACME.ex"}, "[bbbbbbbb aaaaaaa2 aaaaaaa1]"},
		{"part of an author in flight", store.CommitFilter{Author: "AN", InFlight: true}, "[bbbbbbbb aaaaaaa1]"},
		{"part of an author with a percent sign", store.CommitFilter{Author: "50%_o"}, "[ccccccc1]"},
		{"any letter in an author", store.CommitFilter{Author: "a_n"}, "[]"},
		{"part of an author beyond ASCII", store.CommitFilter{Author: "ÖRG"}, "[ccccccc1]"},
		{"all filters", store.CommitFilter{State: &attested, Branch: "main", Author: "Ann"}, "[]"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := []string{}
			for test.filter.Limit = 1; ; {
				list, err := fx.Commits(t.Context(), "acme", "api", test.filter)
				must.OK(t, err)
				for _, c := range list.Data {
					got = append(got, c.SHA[:8])
				}
				if test.filter.Cursor = list.NextCursor; test.filter.Cursor == "" {
					break
				}
			}
			if fmt.Sprint(got) != test.want {
				t.Errorf("got %v, want %s", got, test.want)
			}
		})
	}
}

func (s suite) TestEventsAreListedAfterAnEvent(t *testing.T) {
	fx := s.newFixture(t)
	rec := fx.NewSigner("cn=ci,ou=build,o=acme").Attest(sha(1), "test:go", ledger.Pass)
	for _, descending := range []bool{false, true} {
		list, err := fx.Events(t.Context(), "acme",
			store.EventFilter{Query: store.Query{Limit: 10}, After: rec.Event, Descending: descending})
		must.OK(t, err)
		if len(list.Data) != 2 {
			t.Errorf("%d events after the attestation, want its 2 transitions", len(list.Data))
		}
	}
	list, err := fx.Events(t.Context(), "acme",
		store.EventFilter{Query: store.Query{Limit: 10}, Types: []ledger.EventType{ledger.EventAttestation}, Repo: "API"})
	must.OK(t, err)
	if len(list.Data) != 1 {
		t.Errorf("%d attestation events, want 1", len(list.Data))
	}
	_, err = fx.Events(t.Context(), "acme", store.EventFilter{Query: store.Query{Limit: 10}, After: "evt_none"})
	storetest.WantCode(t, err, ledger.CodeInvalidParameter)
}

// The attestations of a commit are linked, each to the previous one. The list follows
// these links across pages.
func (s suite) TestACommitWithManyAttestationsIsListedInPages(t *testing.T) {
	fx := s.newFixture(t)
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	var want []string
	var since ledger.Time
	for i := range 130 {
		fx.Clock.Advance(time.Second)
		rec := ci.Attest(sha(1), []string{"test:go", "lint:go"}[i%2], ledger.Pass)
		ci.Attest(sha(2), "test:go", ledger.Pass) // of another commit, in between
		want = append(want, rec.ID)
		if i == 50 {
			since = rec.RecordedAt
		}
	}
	slices.Reverse(want)

	for _, limit := range []int{1, 7, 129, 130, 500} {
		f := store.AttestationFilter{Query: store.Query{Limit: limit}, Commit: sha(1)}
		if got := fx.attestationIDs(f); !slices.Equal(got, want) {
			t.Errorf("limit %d: the list has %d attestations, want %d: %v", limit, len(got), len(want), got)
		}
	}
	sinceThen := store.AttestationFilter{Query: store.Query{Limit: 20}, Commit: sha(1), Since: since}
	if got := fx.attestationIDs(sinceThen); !slices.Equal(got, want[:80]) {
		t.Errorf("with since, the list has %d attestations, want 80", len(got))
	}

	c := fx.ReadCommit(sha(1))
	if len(c.Attestations) != 100 || c.Attestations[0].ID != want[0] || c.Attestations[99].ID != want[99] {
		t.Errorf("the record has %d attestations, starting with %s", len(c.Attestations), c.Attestations[0].ID)
	}

	// The cursor of another commit's list returns nothing.
	ofOther := store.AttestationFilter{Query: store.Query{Limit: 1}, Commit: sha(2)}
	page, err := fx.Attestations(t.Context(), "acme", "api", ofOther)
	must.OK(t, err)
	forged := store.AttestationFilter{Query: store.Query{Limit: 1, Cursor: page.NextCursor}, Commit: sha(1)}
	if page, err = fx.Attestations(t.Context(), "acme", "api", forged); err != nil || len(page.Data) > 0 {
		t.Errorf("the cursor of another commit returns %v %v", page.Data, err)
	}
}

// A clock that is set back hides no attestations, and does not change their order.
func (s suite) TestACommitIsListedAfterTheClockWasSetBack(t *testing.T) {
	fx := s.newFixture(t)
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	since := fx.Now()
	var want []string
	for range 5 {
		want = append(want, ci.Attest(sha(1), "test:go", ledger.Pass).ID)
	}
	fx.Clock.Advance(-time.Hour)
	for range 3 {
		want = append(want, ci.Attest(sha(1), "test:go", ledger.Pass).ID)
	}
	slices.Reverse(want)

	for _, filter := range []store.AttestationFilter{{Since: since}, {}} {
		filter.Query, filter.Commit = store.Query{Limit: 2}, sha(1)
		if got := fx.attestationIDs(filter); !slices.Equal(got, want) {
			t.Errorf("since %s: the list has %v, want %v", filter.Since, got, want)
		}
	}
}
