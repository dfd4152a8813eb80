package store_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attention"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/ledger/search"
	"github.com/ledgerd/ledgerd/store"
)

func (e *exerciser) lists() {
	t, ctx := e.t, e.t.Context()
	pages(t, func(q store.Query) (ledger.Page[ledger.Org], error) { return e.Orgs(ctx, q) })
	pages(t, func(q store.Query) (ledger.Page[ledger.Repo], error) { return e.Repos(ctx, "acme", q) })
	pages(t, func(q store.Query) (ledger.Page[ledger.Token], error) { return e.Tokens(ctx, "acme", q) })
	pages(t, func(q store.Query) (ledger.Page[identity.Identity], error) { return e.Identities(ctx, "acme", q) })
	pages(t, func(q store.Query) (ledger.Page[ledger.PredicateCount], error) { return e.Predicates(ctx, "acme", q) })
	pages(t, func(q store.Query) (ledger.Page[policy.Summary], error) { return e.Policies(ctx, "acme", "api", q) })
	pages(t, func(q store.Query) (ledger.Page[ledger.Webhook], error) { return e.Webhooks(ctx, "acme", "api", q) })

	e.listAttestations()
	e.listAttestationTypes()
	e.listCommits()
	e.listEvents()
	e.listExceptions()
	e.listEnvironments()
	e.listAudits()
	e.search()
	e.listAttention()
	check(t, e.InsertTips(ctx, "acme", "api", "busy", 2, 60)) // more than are read one by one
	e.listOverlaps()
	check(t, e.InsertTips(ctx, "acme", "api", "flying", 1, 5000)) // more than a page examines
	e.listOverlaps()
}

func (e *exerciser) listOverlaps() {
	for _, level := range []radar.Level{radar.NoLevel, radar.Low, radar.Medium, radar.High} {
		for _, commit := range []string{"", loginCommit} {
			for _, branch := range []string{"", "feature/login", "busy"} {
				pages(e.t, func(q store.Query) (ledger.Page[ledger.RadarPair], error) {
					return e.Overlaps(e.t.Context(), "acme", "api",
						store.RadarFilter{Query: q, Level: level, Commit: commit, Branch: branch})
				})
			}
		}
	}
}

func (e *exerciser) listAttestations() {
	f := store.AttestationFilter{}
	for i := range 60 { // more than a page reads by their own index
		e.attestsAs("api", sha(1), fmt.Sprint("many:", i), ledger.Pass, fmt.Sprintf("cn=many,ou=%d,o=acme", i))
		e.attests("api", sha(1), fmt.Sprint("https://many.example/", i), ledger.Recorded)
	}

	for _, f.Predicate = range []string{"", "test:go", "test:*", "none:*", "many:*"} {
		for _, f.Identity = range []string{"", buildDN, "build", "nobody", "many"} {
			for _, f.Commit = range []string{"", deployedCommit} {
				for _, f.Status = range []ledger.Status{"", ledger.Pass, ledger.Fail} {
					for _, f.Since = range []ledger.Time{0, 1} {
						for _, f.Ascending = range []bool{false, true} {
							pages(e.t, func(q store.Query) (ledger.Page[ledger.AttestationRecord], error) {
								f.Query = q
								return e.Attestations(e.t.Context(), "acme", "api", f)
							})
						}
					}
				}
			}
		}
	}
	verified := store.AttestationFilter{Query: store.Query{Limit: 10}, Verification: true}
	e.ok(e.Attestations(e.t.Context(), "acme", "api", verified))
}

func (e *exerciser) listAttestationTypes() {
	f := store.AttestationFilter{}
	for _, f.PredicateType = range []string{attestation.ResultPredicateType, "https://many.example/*", "none"} {
		for _, f.Commit = range []string{"", deployedCommit} {
			pages(e.t, func(q store.Query) (ledger.Page[ledger.AttestationRecord], error) {
				f.Query = q
				return e.Attestations(e.t.Context(), "acme", "api", f)
			})
		}
	}
}

func (e *exerciser) listCommits() {
	f := store.CommitFilter{}
	for _, f.State = range []*ledger.State{nil, new(ledger.Attested)} {
		for _, f.Branch = range []string{"", "feature/login"} {
			for _, f.Author = range []string{"", "Ann", "an"} {
				for _, f.InFlight = range []bool{false, true} {
					for _, f.Standing = range []bool{false, true} {
						pages(e.t, func(q store.Query) (ledger.Page[ledger.CommitSummary], error) {
							f.Query = q
							return e.Commits(e.t.Context(), "acme", "api", f)
						})
					}
				}
			}
		}
	}

	for _, f = range []store.CommitFilter{{Text: "in"}, {Text: "in", Author: "an"}, {Text: "in", InFlight: true}} {
		pages(e.t, func(q store.Query) (ledger.Page[ledger.CommitSummary], error) {
			f.Query = q
			return e.Commits(e.t.Context(), "acme", "api", f)
		})
	}
}

func (e *exerciser) listExceptions() {
	f := store.ExceptionFilter{}
	for _, f.Commit = range []string{"", sha(1)} {
		for _, f.Active = range []bool{false, true} {
			pages(e.t, func(q store.Query) (ledger.Page[ledger.ExceptionRecord], error) {
				f.Query = q
				return e.Exceptions(e.t.Context(), "acme", "api", f)
			})
		}
	}
}

func (e *exerciser) listEnvironments() {
	f := store.EnvironmentFilter{}
	for _, f.Repo = range []string{"", "deployed"} {
		for _, f.Name = range []string{"", "eu", "none"} {
			pages(e.t, func(q store.Query) (ledger.Page[ledger.Environment], error) {
				f.Query = q
				return e.Environments(e.t.Context(), "acme", f)
			})
		}
	}
}

// search searches for everything that a query can name, and computes reports.
func (e *exerciser) search() {
	ctx := e.t.Context()
	attestations, err := e.Attestations(ctx, "acme", "api", store.AttestationFilter{Query: store.Query{Limit: 1}})
	check(e.t, err)
	identities, err := e.Identities(ctx, "acme", store.Query{Limit: 1})
	check(e.t, err)
	a := attestations.Data[0]
	for _, text := range []string{
		"login", loginCommit, loginCommit[:8], a.ID, a.Event, everythingHook, identities.Data[0].ID, a.PayloadDigest,
		"sha512:0123456",
	} {
		q, err := search.Parse(text)
		check(e.t, err)
		for _, limit := range []int{1, 100} {
			found, err := e.Search(ctx, "acme", store.SearchQuery{Query: q, Limit: limit, IsAdmin: true})
			check(e.t, err)
			if len(found.Data) == 0 && !strings.HasPrefix(text, "sha512") {
				e.t.Errorf("nothing found for %q", text)
			}
			if found.NextCursor != "" {
				e.ok(e.Search(ctx, "acme", store.SearchQuery{Query: q, Limit: limit, Cursor: found.NextCursor}))
			}
		}
	}
	check(e.t, e.InsertRepos(ctx, "umbrella", 1001)) // more than are read
	q, err := search.Parse("many-1")
	check(e.t, err)
	e.ok(e.Search(ctx, "umbrella", store.SearchQuery{Query: q, Limit: 10}))

	for _, repo := range []string{"", "api"} {
		e.ok(e.Insights(ctx, "acme", repo, 90))
	}
}

// listAttention lists what needs attention, and overviews of repos.
func (e *exerciser) listAttention() {
	ctx := e.t.Context()
	expires := e.Now().Add(time.Hour)
	check(e.t, e.Run(ctx, fmt.Sprintf("UPDATE commits SET expires = %d WHERE expires = 0", expires)))
	defer func() {
		check(e.t, e.Run(ctx, fmt.Sprintf("UPDATE commits SET expires = 0 WHERE expires = %d", expires)))
	}()

	for _, repo := range []string{"", "api", "deployed"} {
		for _, admin := range []bool{false, true} {
			pages(e.t, func(q store.Query) (ledger.Page[attention.Item], error) {
				list, err := e.Attention(ctx, "acme", store.AttentionFilter{Query: q, Repo: repo, Admin: admin})
				return ledger.Page[attention.Item]{Data: list.Data, NextCursor: list.NextCursor}, err
			})
		}
	}
	for _, sort := range ledger.OverviewSorts() {
		for _, name := range []string{"", "e"} {
			for _, reverse := range []bool{false, true} {
				pages(e.t, func(q store.Query) (ledger.Page[ledger.RepoOverview], error) {
					v, err := e.Overview(ctx, "acme", store.OverviewFilter{Query: q, Sort: sort, Name: name, Reverse: reverse})
					return ledger.Page[ledger.RepoOverview]{Data: v.Data, NextCursor: v.NextCursor}, err
				})
			}
		}
	}
}

func (e *exerciser) listEvents() {
	ctx := e.t.Context()
	newest, err := e.Events(ctx, "acme", store.EventFilter{Query: store.Query{Limit: 3}, Descending: true})
	check(e.t, err)
	var event struct {
		ID string `json:"id"`
	}
	check(e.t, json.Unmarshal(newest.Data[2], &event))

	f := store.EventFilter{}
	e.ok(e.LogKey(ctx, "acme", ledger.KeyEvent{Action: ledger.KeyAdded, Purpose: ledger.KeyOfLog}))
	var lists [][]ledger.EventType
	for i, kind := range ledger.EventTypes() {
		lists = append(lists, ledger.EventTypes()[:i], []ledger.EventType{kind})
	}
	for _, f.Types = range append(lists, ledger.EventTypes()) {
		for _, f.Repo = range []string{"", "api"} {
			for _, f.After = range []string{"", event.ID} {
				for _, f.Descending = range []bool{false, true} {
					pages(e.t, func(q store.Query) (ledger.Page[jsontext.Value], error) {
						f.Query = q
						return e.Events(ctx, "acme", f)
					})
				}
			}
		}
	}

	tail, err := e.Tail(ctx, "acme")
	check(e.t, err)
	e.ok(tail.Next(ctx))
	_, _, err = tail.Seq(ctx, event.ID)
	check(e.t, err)
	e.ok(tail.Read(ctx, 0, 10))
}

func (e *exerciser) listAudits() {
	f := store.AuditFilter{}
	for _, f.Action = range []ledger.AuditAction{"", "repo", ledger.AuditRepoCreated} {
		for _, f.By = range []string{"", "ledgerd"} {
			for _, f.Repo = range []string{"", "API"} {
				for _, f.Since = range []ledger.Time{0, 1} {
					for _, f.Ascending = range []bool{false, true} {
						pages(e.t, func(q store.Query) (ledger.Page[jsontext.Value], error) {
							f.Query = q
							return e.Audits(e.t.Context(), "acme", f)
						})
					}
				}
			}
		}
	}
	page, err := e.Audits(e.t.Context(), "acme", store.AuditFilter{Query: store.Query{Limit: 1}})
	check(e.t, err)
	e.ok(e.EventType(e.t.Context(), "acme", idIn(e.t, page.Data[0])))
}

func (e *exerciser) listViolations() {
	f := store.ViolationFilter{}
	for _, f.Repo = range []string{"", "deployed"} {
		for _, f.Commit = range []string{"", sha(1)} {
			if f.Commit != "" && f.Repo == "" {
				continue
			}
			for _, f.Predicate = range []string{"", "deploy:prod", "none"} {
				for _, f.Status = range []ledger.ViolationStatus{"", ledger.ViolationOpen, ledger.ViolationClosed} {
					pages(e.t, func(q store.Query) (ledger.Page[ledger.Violation], error) {
						f.Query = q
						return e.Violations(e.t.Context(), "acme", f)
					})
				}
			}
		}
	}

	e.ok(e.Commit(e.t.Context(), "acme", "deployed", sha(1)))
	for _, repo := range []string{"", "deployed"} {
		pages(e.t, func(q store.Query) (ledger.Page[jsontext.Value], error) {
			return e.Events(e.t.Context(), "acme",
				store.EventFilter{Query: q, Repo: repo, Types: []ledger.EventType{ledger.EventViolation}})
		})
	}
}
