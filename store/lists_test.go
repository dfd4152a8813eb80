package store

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/ledger/search"
	"github.com/ledgerd/ledgerd/store/boards"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/lists"
	"github.com/ledgerd/ledgerd/store/overlaps"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A List is a list of the store, or a report, with values of its filters.
type List struct {
	Name string
	// page reads a page. It picks a value of each filter.
	page func(ctx context.Context, p *Filter) (next string, err error)
}

// A Filter is a combination of values of a list's filters.
type Filter struct {
	txn.Query
	list   List
	left   []int // the number of values of each filter that follow
	picked []any
}

// Filters returns all combinations of values, to be used one after the other.
func (l List) Filters() iter.Seq[*Filter] {
	return func(yield func(*Filter) bool) {
		f := &Filter{list: l}
		for yield(f) && f.advance() {
		}
	}
}

// Page reads a page, and returns the cursor of the next one.
func (f *Filter) Page(ctx context.Context, q txn.Query) (next string, err error) {
	f.Query, f.picked = q, nil
	return f.list.page(ctx, f)
}

// String returns the list with the values of its filters, once a page was read.
func (f *Filter) String() string { return fmt.Sprintf("%s %+v", f.list.Name, f.picked) }

// advance goes on to the next combination, and reports whether there is one.
func (f *Filter) advance() bool {
	for last, left := range slices.Backward(f.left) {
		if left > 0 {
			f.left[last]--
			return true
		}
		f.left = f.left[:last]
	}
	return false
}

// pick returns one of the values, and with the next combinations the others.
func pick[T any](f *Filter, values ...T) T {
	n := len(f.picked)
	if n == len(f.left) {
		f.left = append(f.left, len(values)-1)
	}
	v := values[len(values)-1-f.left[n]]
	f.picked = append(f.picked, v)
	return v
}

// next returns the cursor of the page that follows.
func next[T any](p ledger.Page[T], err error) (string, error) { return p.NextCursor, err }

// ofOrg returns a list of each org.
func ofOrg[T any](
	name string, list func(ctx context.Context, org string, q txn.Query) (ledger.Page[T], error),
) List {
	return List{name, func(ctx context.Context, f *Filter) (string, error) {
		return next(list(ctx, pick(f, "acme", "umbrella"), f.Query))
	}}
}

// ofMember returns a list of each org, and of a member of acme.
func ofMember[T any](
	name string, list func(ctx context.Context, org, member string, q txn.Query) (ledger.Page[T], error), member string,
) List {
	return List{name, func(ctx context.Context, f *Filter) (string, error) {
		org, id := pick(f, "acme", "umbrella"), ""
		if org == "acme" {
			id = pick(f, "", member)
		}
		return next(list(ctx, org, id, f.Query))
	}}
}

// Commits and a webhook that the ledgers of all tests of lists have in acme/api.
var (
	commit1   = fmt.Sprintf("%040x", 1)
	commit2   = fmt.Sprintf("%040x", 2)
	commit500 = fmt.Sprintf("%040x", 500)
)

const (
	webhook = "whk_01M80KN46FEEQMHDDMW3XG40BH"
	anEvent = "evt_00000000000000000000000000" // which no ledger has
)

// Lists returns all lists of the store. Those that need rows which others lack are the last.
func Lists(t testing.TB, s *Store) []List {
	t.Helper()
	attestations, err := s.Attestations(t.Context(), "acme", "api", lists.AttestationFilter{Query: txn.Query{Limit: 1}})
	must.OK(t, err)
	a := attestations.Data[0]
	return slices.Concat(listsWithoutFilters(t, s), listsOfRepos(t, s, a.Event), listsOfCommits(s),
		listsOfOrgs(s, a.Event), searches(t, s, a), listsOfStates(s))
}

func listsWithoutFilters(t testing.TB, s *Store) []List {
	t.Helper()
	members, err := s.Members(t.Context(), "acme", txn.Query{Limit: 1})
	must.OK(t, err)
	member := ""
	for _, m := range members.Data {
		member = m.ID
	}

	return []List{
		{"orgs", func(ctx context.Context, f *Filter) (string, error) { return next(s.Orgs(ctx, f.Query)) }},
		{"deleted orgs", func(ctx context.Context, f *Filter) (string, error) { return next(s.DeletedOrgs(ctx, f.Query)) }},
		ofOrg("repos", s.Repos),
		ofOrg("deleted repos", s.DeletedRepos),
		ofOrg("tokens", s.Tokens),
		ofOrg("identities", s.Identities),
		ofOrg("trusted roots", s.TrustedRoots),
		ofOrg("issuers", s.Issuers),
		ofOrg("exchange rules", s.Rules),
		ofOrg("members", s.Members),
		ofOrg("member rules", s.MemberRules),
		ofOrg("predicates", s.Predicates),
		ofMember("sign-ins", s.SignIns, member),
		ofMember("passkeys", s.Passkeys, member),
		{"policies", func(ctx context.Context, f *Filter) (string, error) {
			return next(s.Policies(ctx, "acme", "api", f.Query))
		}},
		{"webhooks", func(ctx context.Context, f *Filter) (string, error) {
			return next(s.Webhooks(ctx, "acme", "api", f.Query))
		}},
		{"transitions", func(ctx context.Context, f *Filter) (string, error) {
			return next(s.Transitions(ctx, "acme", "api", commit1, f.Query))
		}},
		{"insights", func(ctx context.Context, f *Filter) (string, error) {
			org := pick(f, "acme", "umbrella")
			_, err := s.Insights(ctx, org, pick(f, reposOf(org)...), 365*60) // since the first row
			return "", err
		}},
	}
}

// reposOf returns the repos by which lists of an org are filtered.
func reposOf(org string) []string {
	if org == "acme" {
		return []string{"", "api", "web"}
	}
	return []string{"", "web"}
}

func listsOfRepos(t testing.TB, s *Store, event string) []List {
	t.Helper()
	webhooks, err := s.Webhooks(t.Context(), "acme", "api", txn.Query{Limit: 2})
	must.OK(t, err)
	const vulns, many = "https://in-toto.io/attestation/vulns/", "https://many.example/*"
	return []List{
		{"attestations", func(ctx context.Context, f *Filter) (string, error) {
			return next(s.Attestations(ctx, "acme", "api", lists.AttestationFilter{
				Query:     f.Query,
				Predicate: pick(f, "", "test:1", "test:7*", "test:*", "test:90000", "none"),
				Identity:  pick(f, "", "x", "cn=x,ou=1", "cn=x,ou=90000", "none"),
				Commit:    pick(f, "", commit1, commit2),
				Status:    pick(f, "", ledger.Pass, ledger.Fail, ledger.Errored),
				Since:     pick[ledger.Time](f, 0, manyRows/2),
				Ascending: pick(f, false, true),
			}))
		}},
		{"attestations by type", func(ctx context.Context, f *Filter) (string, error) {
			return next(s.Attestations(ctx, "acme", "api", lists.AttestationFilter{
				Query:         f.Query,
				PredicateType: pick(f, vulns+"v0.1", vulns+"v0.2", vulns+"*", many, "none"),
				Predicate:     pick(f, "", "test:1", "test:*", vulns+"v0.2"),
				Identity:      pick(f, "", "x"),
				Commit:        pick(f, "", commit1),
				Status:        pick(f, "", ledger.Recorded),
				Verification:  true,
			}))
		}},
		{"deliveries", func(ctx context.Context, f *Filter) (string, error) {
			return next(s.Deliveries(ctx, "acme", "api", pick(f, webhooks.Data...).ID, DeliveryFilter{
				Query:  f.Query,
				Event:  pick(f, "", event, anEvent),
				Status: pick(f, "", outbound.DeliveryPending, outbound.DeliverySucceeded, outbound.DeliveryFailed),
			}))
		}},
		{"exceptions", func(ctx context.Context, f *Filter) (string, error) {
			return next(s.Exceptions(ctx, "acme", "api", lists.ExceptionFilter{
				Query:  f.Query,
				Commit: pick(f, "", commit1, commit500),
				Active: pick(f, false, true),
			}))
		}},
	}
}

func listsOfOrgs(s *Store, event string) []List {
	return []List{
		{"events", func(ctx context.Context, f *Filter) (string, error) {
			return next(s.Events(ctx, "acme", events.EventFilter{
				Query:      f.Query,
				Types:      pick(f, eventTypes()...),
				Repo:       pick(f, "", "api", "web"),
				After:      pick(f, "", event),
				Descending: pick(f, false, true),
			}))
		}},
		{"administrative actions", func(ctx context.Context, f *Filter) (string, error) {
			return next(s.Audits(ctx, "acme", events.AuditFilter{
				Query:     f.Query,
				Action:    pick[ledger.AuditAction](f, "", "token", "token.created", "repo.created"),
				By:        pick(f, "", "tok_x", "ledgerd"),
				Repo:      pick(f, "", "api", "none"),
				Since:     pick[ledger.Time](f, 0, 5, manyRows-5),
				Ascending: pick(f, false, true),
			}))
		}},
		{"violations", func(ctx context.Context, f *Filter) (string, error) {
			v := lists.ViolationFilter{Query: f.Query, Repo: pick(f, "", "api", "web")}
			if v.Repo == "api" {
				v.Commit = pick(f, "", commit1, commit2)
			}
			v.Predicate = pick(f, "", "test:1", "test:90000", "none")
			v.Status = pick(f, "", ledger.ViolationOpen, ledger.ViolationClosed)
			return next(s.Violations(ctx, "acme", v))
		}},
	}
}

// eventTypes returns sets of types of events: each type, the first n, and all combinations of
// types that are read in different ways.
func eventTypes() [][]ledger.EventType {
	sets := [][]ledger.EventType{nil}
	for _, kind := range []ledger.EventType{
		ledger.EventAttestation, ledger.EventPolicy, ledger.EventRadar, ledger.EventViolation, ledger.EventAudit,
	} {
		for _, set := range sets {
			sets = append(sets, append(slices.Clip(set), kind))
		}
	}
	all := ledger.EventTypes()
	for i, kind := range all {
		sets = append(sets, []ledger.EventType{kind}, all[:i+1])
	}
	return sets
}

func listsOfCommits(s *Store) []List {
	return []List{
		{"commits", func(ctx context.Context, f *Filter) (string, error) {
			return next(s.Commits(ctx, "acme", "api", lists.CommitFilter{
				Query:    f.Query,
				State:    pick(f, nil, new(ledger.Draft), new(ledger.Attested)),
				Branch:   pick(f, "", "busy", "none"),
				Author:   pick(f, "", "Ann", "ann@example.com", "none"),
				InFlight: pick(f, false, true),
				Standing: pick(f, false, true),
			}))
		}},
		{"commits with a text", func(ctx context.Context, f *Filter) (string, error) {
			c := pick(f, lists.CommitFilter{Text: "nowhere"}, lists.CommitFilter{Text: "busy"},
				lists.CommitFilter{Text: "nowhere", Author: "Ann"}, lists.CommitFilter{Text: "nowhere", Author: "none"},
				lists.CommitFilter{Text: "nowhere", Branch: "busy", State: new(ledger.Draft)},
				lists.CommitFilter{Text: "nowhere", InFlight: true})
			c.Query = f.Query
			return next(s.Commits(ctx, "acme", "api", c))
		}},
	}
}

// searches returns searches for what is found in many rows, in one, or in none.
func searches(t testing.TB, s *Store, a ledger.AttestationRecord) []List {
	t.Helper()
	identities, err := s.Identities(t.Context(), "acme", txn.Query{Limit: 1})
	must.OK(t, err)
	texts := []string{"nothing like it", "busy", "Ann", "x", "test:1", "r1", commit1[:7], commit500, webhook,
		"sha256:0000000", "sha256:" + strings.Repeat("0", 64), "sha512:0123456", "att_00000000000000000000000000", anEvent,
		a.ID, a.Event, a.PayloadDigest}
	for _, i := range identities.Data {
		texts = append(texts, i.ID)
	}

	var queries []search.Query
	for _, text := range texts {
		q, err := search.Parse(text)
		must.OK(t, err)
		queries = append(queries, q)
	}
	return []List{{"search", func(ctx context.Context, f *Filter) (string, error) {
		org := pick(f, "acme", "umbrella")
		found, err := s.Search(ctx, org,
			SearchQuery{Query: pick(f, queries...), Limit: f.Limit, Cursor: f.Cursor, IsAdmin: true})
		return found.NextCursor, err
	}}}
}

// listsOfStates returns the lists of what the states of commits have to do with.
func listsOfStates(s *Store) []List {
	return []List{
		{"overlaps", func(ctx context.Context, f *Filter) (string, error) {
			return next(s.Overlaps(ctx, "acme", "api", overlaps.RadarFilter{
				Query:  f.Query,
				Level:  pick(f, radar.NoLevel, radar.Low, radar.Medium, radar.High),
				Commit: pick(f, "", commit1, commit500),
				Branch: pick(f, "", "busy", "none"),
			}))
		}},
		{"environments", func(ctx context.Context, f *Filter) (string, error) {
			org := pick(f, "acme", "umbrella")
			return next(s.Environments(ctx, org, boards.EnvironmentFilter{
				Query: f.Query,
				Repo:  pick(f, reposOf(org)...),
				Name:  pick(f, "", "prod", "none"),
			}))
		}},
		{"attention", func(ctx context.Context, f *Filter) (string, error) {
			org := pick(f, "acme", "umbrella")
			list, err := s.Attention(ctx, org, boards.AttentionFilter{
				Query: f.Query,
				Repo:  pick(f, reposOf(org)...),
				Admin: pick(f, false, true),
			})
			return list.NextCursor, err
		}},
		{"overview", func(ctx context.Context, f *Filter) (string, error) {
			v, err := s.Overview(ctx, pick(f, "acme", "umbrella"), boards.OverviewFilter{
				Query:   f.Query,
				Sort:    pick(f, ledger.OverviewSorts()...),
				Name:    pick(f, "", "r9999", "none"),
				Reverse: pick(f, false, true),
			})
			return v.NextCursor, err
		}},
	}
}
