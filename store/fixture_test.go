package store_test

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store"
)

// v5 is the directory with the output of testdata/make-v5.sh: what ledgerd printed for a
// database of schema version 5.
const v5 = "testdata/v5"

// wantV5 decodes a file of the directory v5.
func wantV5[T any](t *testing.T, name ...string) T {
	t.Helper()
	text := must.Read(t, filepath.Join(append([]string{v5}, name...)...))
	var v T
	must.OK(t, ledger.DecodeStrict(text, &v))
	return v
}

// openV5 opens a copy of the database of version 5. The clock shows the time at which the
// files in v5 were written.
func openV5(t *testing.T) *store.Store {
	t.Helper()
	path, now := store.UnpackV5(t), store.WhenV5(t)
	s := must.Get(store.Open(t.Context(), path, store.Options{Now: func() time.Time { return now }}))(t)
	t.Cleanup(func() { s.Close() })
	must.OK(t, s.Settle(t.Context()))
	return s
}

// sameJSON compares two values by their JSON.
func sameJSON(t *testing.T, label string, got, want any) {
	t.Helper()
	var texts [2]string
	for i, v := range []any{got, want} {
		text := must.Get(json.Marshal(v, json.Deterministic(true), jsontext.WithIndent(" ")))(t)
		texts[i] = string(text)
	}
	if texts[0] != texts[1] {
		t.Errorf("%s: got\n%s\nwant\n%s", label, texts[0], texts[1])
	}
}

// wholeList returns the items of a list that fits on one page.
func wholeList[T any](t *testing.T, page ledger.Page[T], err error) []T {
	t.Helper()
	must.OK(t, err)
	if page.NextCursor != "" {
		t.Fatal("the list does not fit on one page")
	}
	return page.Data
}

// mappedPredicates has the names that replace the predicate types which version 5 used as
// predicates.
var mappedPredicates = map[string]string{
	"https://in-toto.io/attestation/test-result/v0.1": "test:ci.yml",
	"https://slsa.dev/provenance/v1":                  "build:ci.example/runner",
}

// mapped returns an attestation of version 5 with its outcome by the present rules.
func mapped(r ledger.AttestationRecord) ledger.AttestationRecord {
	if name, ok := mappedPredicates[r.PredicateType]; ok {
		r.Predicate = name
	}
	if strings.HasPrefix(r.Predicate, "build:ci") {
		r.Slot = "sha256:" + strings.Repeat("0", 63) + "7"
	}
	return r
}

func mappedAll(list []ledger.AttestationRecord) []ledger.AttestationRecord {
	for i := range list {
		list[i] = mapped(list[i])
	}
	return list
}

// mappedCounts returns the predicates of version 5 by their present names, sorted.
func mappedCounts(list []ledger.PredicateCount) []ledger.PredicateCount {
	for i := range list {
		list[i].Predicate = cmp.Or(mappedPredicates[list[i].Predicate], list[i].Predicate)
	}
	slices.SortFunc(list, func(a, b ledger.PredicateCount) int { return strings.Compare(a.Predicate, b.Predicate) })
	return list
}

// upgradedRequirements has the requirements of version 5 whose status has changed, by
// their commit and the reason that they had. People count once, however their names are
// written, and the results of other tools' tests are called test:.
var upgradedRequirements = map[string]ledger.RequirementStatus{
	"1c950c8 met by cn=Ann,ou=web,o=acme": {
		Have: 2, SignersCounted: []string{"cn=Ann,ou=web,o=acme", "cn=build,ou=ci,o=acme"},
		Reason: "met by cn=Ann,ou=web,o=acme and cn=build,ou=ci,o=acme"},
	`1c950c8 met by cn=MIA\ ,ou=Web,o=ACME and cn=Mia,ou=web,o=acme`: {
		Have: 1, SignersCounted: []string{"cn=Mia,ou=web,o=acme"}, Reason: "met by cn=Mia,ou=web,o=acme"},
	`8143a7b review:*: 0 of 2 signatures; expired: review:code passed (cn=Ann,ou=web,o=acme) and review:code passed ` +
		`(cn=MIA\ ,ou=Web,o=ACME) and review:code passed (cn=Mia,ou=web,o=acme) and 1 more`: {
		SignersCounted: []string{},
		Reason: "review:*: 0 of 2 signatures; expired: review:code passed (cn=Ann,ou=web,o=acme)" +
			" and review:code passed (cn=Mia,ou=web,o=acme) and review:late passed (cn=Ann,ou=web,o=acme)"},
	"adbc881 test:*: 0 of 1 signatures": {
		Have: 1, SignersCounted: []string{"cn=ci-bot,ou=build,o=acme"}, FailedBy: []string{"cn=dev,ou=web,o=acme"},
		Reason: "test:ci.yml failed (cn=dev,ou=web,o=acme)"},
}

func upgradeRequirement(commit string, s *ledger.RequirementStatus) {
	if now, ok := upgradedRequirements[commit[:7]+" "+s.Reason]; ok {
		s.Have, s.SignersCounted, s.FailedBy, s.Reason = now.Have, now.SignersCounted, now.FailedBy, now.Reason
	}
}

// TestFixtureV5 checks that the migration of a database of version 5 does not change what
// ledgerd returns for it, except for the outcomes of other tools' statements.
func TestFixtureV5(t *testing.T) {
	s, ctx, all := openV5(t), t.Context(), store.Query{Limit: 500}
	orgs, err := s.Orgs(ctx, all)
	sameJSON(t, "orgs", wholeList(t, orgs, err), wantV5[[]ledger.Org](t, "orgs.json"))
	for _, org := range orgs.Data {
		o := org.Name
		identities, err := s.Identities(ctx, o, all)
		sameJSON(t, o+": identities", wholeList(t, identities, err), wantV5[[]identity.Identity](t, o, "identity.json"))
		predicates, err := s.Predicates(ctx, o, all)
		sameJSON(t, o+": predicates", mappedCounts(wholeList(t, predicates, err)),
			mappedCounts(wantV5[[]ledger.PredicateCount](t, o, "predicate.json")))
		tokens, err := s.Tokens(ctx, o, all)
		sameJSON(t, o+": tokens", wholeList(t, tokens, err), wantV5[[]ledger.Token](t, o, "token.json"))
		repos, err := s.Repos(ctx, o, all)
		sameJSON(t, o+": repos", wholeList(t, repos, err), wantV5[[]ledger.Repo](t, o, "repo.json"))

		bodies := must.Read(t, filepath.Join(v5, o, "events.jsonl"))
		want := bytes.Split(bytes.TrimSuffix(bodies, []byte("\n")), []byte("\n"))
		events, err := s.Events(ctx, o, store.EventFilter{Query: all, Types: typesV5()})
		got := wholeList(t, events, err)
		if len(got) != len(want) {
			t.Fatalf("%s: %d events, want %d", o, len(got), len(want))
		}
		for i := range got {
			if !bytes.Equal(got[i], want[i]) {
				t.Errorf("%s: event %d is\n%s\nwant\n%s", o, i, got[i], want[i])
			}
		}

		for _, repo := range repos.Data {
			t.Run(o+"/"+repo.Name, func(t *testing.T) { wantRepoV5(t, s, o, repo.Name) })
		}
	}
}

// typesV5 returns all types of events but those that an upgrade adds: of standings, and of what is known of commits.
func typesV5() []ledger.EventType {
	return slices.DeleteFunc(ledger.EventTypes(), func(t ledger.EventType) bool {
		return t == ledger.EventStanding || t == ledger.EventCommit
	})
}

// TestFixtureV5Environments checks that the migration finds what runs where.
func TestFixtureV5Environments(t *testing.T) {
	s := openV5(t)
	list, err := s.Environments(t.Context(), "acme", store.EnvironmentFilter{Query: store.Query{Limit: 500}})
	must.OK(t, err)
	var got []string
	for _, e := range list.Data {
		d := e.Deployment
		if d == nil {
			t.Fatalf("%s of %s has no deployment", e.Predicate, e.Repo)
		}
		got = append(got, fmt.Sprintf("%s %s: %s %s by %s, %d behind, required: %t", e.Repo, e.Predicate, d.Subject, d.State,
			d.Identity, d.Behind, d.Required))
	}
	want := []string{
		"api deploy:prod: Release 2 DEPLOYED by cn=build,ou=ci,o=acme, 2 behind, required: true",
		"web deploy:prod: Release 3 DEPLOYED by cn=Mia,ou=web,o=acme, 0 behind, required: true",
	}
	if !slices.Equal(got, want) {
		t.Errorf("environments %q, want %q", got, want)
	}
}

// standingV5 returns the standing of a commit, which records did not have before.
func standingV5(c ledger.Commit) ledger.State {
	if c.State != ledger.Deployed {
		return c.State
	}
	standing := ledger.Promotable
	for _, r := range c.Requirements {
		if r.Applies && !r.Met {
			standing = min(standing, r.State-1)
		}
	}
	return standing
}

func wantRepoV5(t *testing.T, s *store.Store, org, repo string) {
	ctx, all := t.Context(), store.Query{Limit: 500}
	commits, err := s.Commits(ctx, org, repo, store.CommitFilter{Query: all})
	sameJSON(t, "commits", wholeList(t, commits, err), wantV5[[]ledger.CommitSummary](t, org, repo, "commits.json"))
	for _, c := range commits.Data {
		got, err := s.Commit(ctx, org, repo, c.SHA)
		must.OK(t, err)
		want := wantV5[ledger.Commit](t, org, repo, "commits", c.SHA+".json")
		want.AttestationsURL, want.TransitionsURL = "", "" // the server adds them
		for i := range got.Requirements {                  // reasons did not name strangers before
			r := &got.Requirements[i]
			r.Reason, _, _ = strings.Cut(r.Reason, "; the org knows nobody of this name")
		}
		want.Withdrawn = c.Branch == "feature/given-up" // did not say so before
		mappedAll(want.Attestations)
		for i := range want.Requirements {
			upgradeRequirement(c.SHA, &want.Requirements[i])
		}
		want.Standing = standingV5(want)
		sameJSON(t, "commit "+c.SHA, got, want)
	}

	attestations, err := s.Attestations(ctx, org, repo, store.AttestationFilter{Query: all})
	sameJSON(t, "attestations", wholeList(t, attestations, err),
		mappedAll(wantV5[[]ledger.AttestationRecord](t, org, repo, "attestations.json")))
	overlaps, err := s.Overlaps(ctx, org, repo, store.RadarFilter{Query: all})
	sameJSON(t, "overlaps", wholeList(t, overlaps, err), wantV5[[]ledger.RadarPair](t, org, repo, "radar.json"))
	policies, err := s.Policies(ctx, org, repo, all)
	var summaries []policy.Summary // lists no longer have the contracts
	for _, p := range wantV5[[]policy.Policy](t, org, repo, "policies.json") {
		summaries = append(summaries, policy.Summary{
			Org: p.Org, Repo: p.Repo, Version: p.Version, Digest: p.Digest, CreatedAt: p.CreatedAt, CreatedBy: p.CreatedBy,
		})
	}
	sameJSON(t, "policies", wholeList(t, policies, err), summaries)
	p, err := s.Policy(ctx, org, repo, 0)
	must.OK(t, err)
	wantPolicy := wantV5[policy.Policy](t, org, repo, "policy.json")
	wantPolicy.Targets = policy.ClaimedTargets // which is what earlier contracts meant
	sameJSON(t, "policy", p, wantPolicy)

	webhooks, err := s.Webhooks(ctx, org, repo, all)
	sameJSON(t, "webhooks", wholeList(t, webhooks, err), wantV5[[]outbound.Webhook](t, org, repo, "webhooks.json"))
	for _, w := range webhooks.Data {
		deliveries, err := s.Deliveries(ctx, org, repo, w.ID, store.DeliveryFilter{Query: all})
		sameJSON(t, "deliveries of "+w.ID, wholeList(t, deliveries, err),
			wantV5[[]outbound.Delivery](t, org, repo, "deliveries", w.ID+".json"))
	}
}

// mayClaim returns what an identity may attest that makes claims, too.
func mayClaim() identity.Predicates { return identity.Predicates{"*", "merge:*"} }
