package store

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/ledger/search"
)

// listSimple calls list for the lists without filters.
func listSimple(s *Store, list listFunc) {
	list("orgs", func(ctx context.Context, q Query) (string, error) { return next(s.Orgs(ctx, q)) })
	for _, org := range []string{"acme", "crowd"} {
		list("repos of "+org, func(ctx context.Context, q Query) (string, error) { return next(s.Repos(ctx, org, q)) })
		list("tokens of "+org, func(ctx context.Context, q Query) (string, error) { return next(s.Tokens(ctx, org, q)) })
		list("identities of "+org, func(ctx context.Context, q Query) (string, error) {
			return next(s.Identities(ctx, org, q))
		})
		list("issuers of "+org, func(ctx context.Context, q Query) (string, error) { return next(s.Issuers(ctx, org, q)) })
		list("exchange rules of "+org, func(ctx context.Context, q Query) (string, error) {
			return next(s.Rules(ctx, org, q))
		})
		list("predicates of "+org, func(ctx context.Context, q Query) (string, error) {
			return next(s.Predicates(ctx, org, q))
		})
	}
	list("transitions", func(ctx context.Context, q Query) (string, error) {
		return next(s.Transitions(ctx, "acme", "api", fmt.Sprintf("%040x", 1), q))
	})
	for org, repo := range map[string]string{"acme": "api", "crowd": "r1"} {
		list("review in "+org, func(ctx context.Context, _ Query) (string, error) {
			return "", reviewLargest(ctx, s, org, repo)
		})
	}
	list("versions", func(ctx context.Context, q Query) (string, error) { return next(s.Policies(ctx, "acme", "api", q)) })
	list("webhooks", func(ctx context.Context, q Query) (string, error) { return next(s.Webhooks(ctx, "acme", "api", q)) })

	for _, hook := range []string{"whk_1", "whk_2"} {
		for _, event := range []string{"", "evt_00000000000000000000000000"} {
			for _, status := range []ledger.DeliveryStatus{
				"", ledger.DeliveryPending, ledger.DeliverySucceeded, ledger.DeliveryFailed,
			} {
				list(fmt.Sprintf("deliveries of %s %q %s", hook, event, status),
					func(ctx context.Context, q Query) (string, error) {
						return next(s.Deliveries(ctx, "acme", "api", hook, DeliveryFilter{Query: q, Event: event, Status: status}))
					})
			}
		}
	}
}

// reviewLargest reads the facts for a review of a contract that is about 200 predicates and
// types, of which there are many.
func reviewLargest(ctx context.Context, s *Store, org, repo string) error {
	var c policy.Contract
	for i := range 100 {
		c.Requirements = append(c.Requirements, policy.Requirement{Predicate: fmt.Sprintf("test:%d*", i)},
			policy.Requirement{Type: fmt.Sprintf("https://many.example/%d*", i)})
	}
	f, err := s.LintFacts(ctx, org, repo, c)
	if err == nil && (len(f.Signers) > maxLintSigners || f.Missing != (org == "crowd") ||
		len(f.Signed["test:1*"]) > maxLintNames) {
		return fmt.Errorf("%d identities, missing: %t, names: %q", len(f.Signers), f.Missing, f.Signed["test:1*"])
	}
	return err
}

func listAttestations(s *Store, list listFunc) {
	f := AttestationFilter{}
	for _, f.Predicate = range []string{"", "test:1", "test:7*", "test:*", "test:90000", "none"} {
		for _, f.Identity = range []string{"", "x", "cn=x,ou=1", "cn=x,ou=90000", "none"} {
			for _, f.Commit = range []string{"", fmt.Sprintf("%040x", 1), fmt.Sprintf("%040x", 2)} {
				for _, f.Status = range []ledger.Status{"", ledger.Pass, ledger.Fail, ledger.Errored} {
					for _, f.Since = range []ledger.Time{0, 50_000} {
						for _, f.Ascending = range []bool{false, true} {
							list(fmt.Sprintf("attestations %+v", f), func(ctx context.Context, q Query) (string, error) {
								f.Query = q
								return next(s.Attestations(ctx, "acme", "api", f))
							})
							f.Query = Query{}
						}
					}
				}
			}
		}
	}
}

func listAttestationTypes(s *Store, list listFunc) {
	f := AttestationFilter{}
	const vulns = "https://in-toto.io/attestation/vulns/"
	types := []string{vulns + "v0.1", vulns + "v0.2", vulns + "*", "https://many.example/*", "none"}
	for _, f.PredicateType = range types {
		for _, f.Predicate = range []string{"", "test:1", "test:*", vulns + "v0.2"} {
			for _, f.Identity = range []string{"", "x"} {
				for _, f.Commit = range []string{"", fmt.Sprintf("%040x", 1)} {
					for _, f.Status = range []ledger.Status{"", ledger.Recorded} {
						list(fmt.Sprintf("attestations %+v", f), func(ctx context.Context, q Query) (string, error) {
							f.Query = q
							return next(s.Attestations(ctx, "acme", "api", f))
						})
						f.Query = Query{}
					}
				}
			}
		}
	}
}

func listCommits(s *Store, list listFunc) {
	f := CommitFilter{}
	for _, f.State = range []*ledger.State{nil, new(ledger.Draft), new(ledger.Attested)} {
		for _, f.Branch = range []string{"", "busy", "none"} {
			for _, f.Author = range []string{"", "Ann", "ann@example.com", "none"} {
				for _, f.InFlight = range []bool{false, true} {
					for _, f.Standing = range []bool{false, true} {
						list(fmt.Sprintf("commits %+v", f), func(ctx context.Context, q Query) (string, error) {
							f.Query = q
							return next(s.Commits(ctx, "acme", "api", f))
						})
						f.Query = Query{}
					}
				}
			}
		}
	}

	for _, f = range []CommitFilter{{Text: "nowhere"}, {Text: "busy"}, {Text: "nowhere", Author: "Ann"},
		{Text: "nowhere", Branch: "busy", State: new(ledger.Draft)}, {Text: "nowhere", InFlight: true}} {
		list(fmt.Sprintf("commits %+v", f), func(ctx context.Context, q Query) (string, error) {
			f.Query = q
			return next(s.Commits(ctx, "acme", "api", f))
		})
	}
	list("commits from the middle", func(ctx context.Context, q Query) (string, error) {
		q.Cursor = cmp.Or(q.Cursor, listingOf(s, "commits", 1).cursor(manyRows/2))
		return next(s.Commits(ctx, "acme", "api", CommitFilter{Query: q, Standing: true}))
	})
	// The oldest tip may overlap with all others.
	for _, n := range []int{1, manyRows / 2, manyRows} {
		list(fmt.Sprint("commit ", n), func(ctx context.Context, _ Query) (string, error) {
			_, err := s.Commit(ctx, "acme", "api", fmt.Sprintf("%040x", n))
			return "", err
		})
	}
}

func listEvents(s *Store, list listFunc) {
	types := ledger.EventTypesFor(ledger.Read)
	sets := [][]ledger.EventType{ledger.EventTypes(), {ledger.EventAudit}, {ledger.EventAudit, ledger.EventPolicy}}
	for i := range 1 << len(types) {
		var set []ledger.EventType
		for bit, kind := range types {
			if i>>bit&1 == 1 {
				set = append(set, kind)
			}
		}
		sets = append(sets, set)
	}

	f := EventFilter{}
	for _, f.Types = range sets {
		for _, f.Repo = range []string{"", "api", "web"} {
			for _, f.Descending = range []bool{false, true} {
				list(fmt.Sprintf("events %+v", f), func(ctx context.Context, q Query) (string, error) {
					f.Query = q
					return next(s.Events(ctx, "acme", f))
				})
				f.Query = Query{}
			}
		}
	}
}

func listAudits(s *Store, list listFunc) {
	f := AuditFilter{}
	for _, f.Action = range []ledger.AuditAction{"", "token", "token.created", "repo.created"} {
		for _, f.By = range []string{"", "tok_x", "host"} {
			for _, f.Repo = range []string{"", "api", "none"} {
				for _, f.Since = range []ledger.Time{0, 5, manyRows - 5} {
					for _, f.Ascending = range []bool{false, true} {
						list(fmt.Sprintf("administrative actions %+v", f), func(ctx context.Context, q Query) (string, error) {
							f.Query = q
							return next(s.Audits(ctx, "acme", f))
						})
						f.Query = Query{}
					}
				}
			}
		}
	}
}

func listViolations(s *Store, list listFunc) {
	f := ViolationFilter{}
	for _, f.Repo = range []string{"", "api", "web"} {
		for _, f.Commit = range []string{"", fmt.Sprintf("%040x", 1), fmt.Sprintf("%040x", 2)} {
			if f.Commit != "" && f.Repo != "api" {
				continue
			}
			for _, f.Predicate = range []string{"", "test:1", "test:90000", "none"} {
				for _, f.Status = range []ledger.ViolationStatus{"", ledger.ViolationOpen, ledger.ViolationClosed} {
					list(fmt.Sprintf("violations %+v", f), func(ctx context.Context, q Query) (string, error) {
						f.Query = q
						return next(s.Violations(ctx, "acme", f))
					})
					f.Query = Query{}
				}
			}
		}
	}
}

// listEnvironments lists environments of many repos and of one repo, with many deployments,
// commits and violations. Afterwards, the commits are as before.
func listEnvironments(t *testing.T, s *Store, list listFunc) {
	t.Helper()
	run := func(script string) {
		t.Helper()
		check(t, s.write(t.Context(), "", func(t *tx) error { return t.Run(script) }))
	}
	run(`
UPDATE predicates SET name = 'deploy:x' WHERE id = 7;
INSERT INTO environments (predicate_id, repo_id, org_id, latest_id) SELECT id, 1, 1, id FROM predicates;
INSERT INTO environments (predicate_id, repo_id, org_id, latest_id) SELECT 7, id, 2, id FROM repos WHERE id > 2;
INSERT INTO environments (predicate_id, repo_id, org_id, latest_id) VALUES (7, 2, 1, 1);
INSERT INTO deployments (repo_id, predicate_id, commit_id, attestation_id, required, ended_id)
  SELECT 1, 7, id, id, 1, id % 2 FROM commits;
UPDATE environments SET latest_id = 1000000 WHERE repo_id = 1 AND predicate_id < 70;
UPDATE commits SET state = 3`)
	for _, org := range []string{"acme", "crowd"} {
		for _, repo := range []string{"", "api", "web", "r1"} {
			if repo != "" && (repo == "r1") != (org == "crowd") {
				continue
			}
			for _, name := range []string{"", "x", "none"} {
				list(fmt.Sprintf("environments of %s/%s %s", org, repo, name), func(ctx context.Context, q Query) (string, error) {
					return next(s.Environments(ctx, org, EnvironmentFilter{Query: q, Repo: repo, Name: name}))
				})
			}
		}
	}

	run("UPDATE commits SET state = 0; UPDATE predicates SET name = 'test:7' WHERE id = 7")
	s.caches.evictRows()
}

// listSearch searches for what is found in many rows, or in none.
func listSearch(t *testing.T, s *Store, list listFunc) {
	t.Helper()
	for _, org := range []string{"acme", "crowd"} {
		for _, text := range []string{
			"nothing like it", "busy", "Ann", "x", "test:1", "r1", "0000000", fmt.Sprintf("%040x", 500), "sha256:0000000",
			"sha256:" + strings.Repeat("0", 64), "att_00000000000000000000000000", "evt_00000000000000000000000000",
		} {
			q, err := search.Parse(text)
			check(t, err)
			list(fmt.Sprintf("search in %s for %q", org, text), func(ctx context.Context, page Query) (string, error) {
				found, err := s.Search(ctx, org, SearchQuery{Query: q, Limit: page.Limit, Cursor: page.Cursor, IsAdmin: true})
				return found.NextCursor, err
			})
		}
	}
}

func listInsights(s *Store, list listFunc) {
	for org, repos := range map[string][]string{"acme": {"", "api", "web"}, "crowd": {"", "r1"}} {
		for _, repo := range repos {
			list(fmt.Sprintf("insights of %s/%s", org, repo), func(ctx context.Context, _ Query) (string, error) {
				_, err := s.Insights(ctx, org, repo, 365*60) // since the first row
				return "", err
			})
		}
	}
}

// listAttention lists what needs attention if everything does, and overviews of many repos.
// Afterwards, the commits are as before.
func listAttention(t *testing.T, s *Store, list listFunc) {
	t.Helper()
	run := func(script string) {
		t.Helper()
		check(t, s.write(t.Context(), "", func(t *tx) error { return t.Run(script) }))
	}
	soon := s.Now().Add(time.Hour)
	run(fmt.Sprintf(`
INSERT INTO policies (repo_id, version, digest, contract, created_at, created_by)
  SELECT id, 1, '', CAST('{"requirements":[]}' AS BLOB), 1, '' FROM repos WHERE org_id = 2;
UPDATE commits SET state = 2, state_since = %[1]d, failing_since = (id %% 2) * %[1]d, expires = %[2]d,
  branch = 'b' || id %% 7;
INSERT INTO repo_states (repo_id, state, commits) VALUES (1, 2, 100000)
  ON CONFLICT (repo_id, state) DO UPDATE SET commits = 100000;
UPDATE tips SET level = 3;
UPDATE overlaps SET level = 3;
UPDATE webhooks SET active = 0;
UPDATE tokens SET expires_at = %[2]d;
UPDATE identities SET not_after = %[2]d;
UPDATE exceptions SET ends_at = %[2]d + attestation_id`, s.Now(), soon))
	s.caches.evictRows()
	for _, org := range []string{"acme", "crowd"} {
		for _, repo := range []string{"", "api"} {
			if repo != "" && org == "crowd" {
				continue
			}
			list(fmt.Sprintf("attention of %s/%s", org, repo), func(ctx context.Context, q Query) (string, error) {
				l, err := s.Attention(ctx, org, AttentionFilter{Query: q, Repo: repo, Admin: true})
				return l.NextCursor, err
			})
		}
		for _, sort := range ledger.OverviewSorts() {
			for _, name := range []string{"", "r9999", "none"} {
				list(fmt.Sprintf("overview of %s by %s %s", org, sort, name), func(ctx context.Context, q Query) (string, error) {
					v, err := s.Overview(ctx, org, OverviewFilter{Query: q, Sort: sort, Name: name})
					return v.NextCursor, err
				})
			}
		}
	}

	run(`
DELETE FROM policies WHERE repo_id > 2;
UPDATE commits SET state = 0, failing_since = 0, expires = 0, branch = 'busy';
DELETE FROM repo_states WHERE state = 2;
UPDATE tips SET level = 0;
UPDATE overlaps SET level = 1;
UPDATE webhooks SET active = 1;
UPDATE exceptions SET ends_at = 4102444800000 + attestation_id`)
	s.caches.evictRows()
}

func listExceptions(s *Store, list listFunc) {
	f := ExceptionFilter{}
	for _, f.Commit = range []string{"", fmt.Sprintf("%040x", 1), fmt.Sprintf("%040x", 500)} {
		for _, f.Active = range []bool{false, true} {
			list(fmt.Sprintf("exceptions %+v", f), func(ctx context.Context, q Query) (string, error) {
				f.Query = q
				return next(s.Exceptions(ctx, "acme", "api", f))
			})
			f.Query = Query{}
		}
	}
}

func listRadar(s *Store, list listFunc) {
	f := RadarFilter{}
	for _, f.Level = range []radar.Level{radar.NoLevel, radar.Low, radar.Medium, radar.High} {
		for _, f.Commit = range []string{"", fmt.Sprintf("%040x", 1), fmt.Sprintf("%040x", 500)} {
			for _, f.Branch = range []string{"", "busy", "none"} {
				list(fmt.Sprintf("radar %+v", f), func(ctx context.Context, q Query) (string, error) {
					f.Query = q
					return next(s.Overlaps(ctx, "acme", "api", f))
				})
				f.Query = Query{}
			}
		}
	}
}
