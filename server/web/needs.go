package web

import (
	"cmp"
	"slices"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/server/web/format"
)

// A need is something that needs attention.
type need struct {
	Kind string
	Bad  bool // blocks progress
	Repo string
	// Name is the subject of the need. Why and By are the reason and the signer;
	// either can be empty. All three are untrusted texts.
	Name, Why, By string
	Path          string // of its page
	At            ledger.Time
}

// Limits of the search for needs.
const (
	needViolations   = 100
	needRepos        = 25
	needCommits      = 20  // in flight, per repo
	needAll          = 100 // commits in all repos; their unmet requirements are the slowest part of the page
	needRows         = 500 // tokens, or identities; one page of the API
	needsShown       = 12
	allNeedsShown    = 200 // on request
	keyExpiresSoon   = 14 * 24 * time.Hour
	tokenExpiresSoon = 7 * 24 * time.Hour

	exceptionEndsSoon = 24 * time.Hour
	endingExceptions  = 20 // exceptions that end soon, per repo
)

// needs returns the needs of the repos and the org that the visitor may see,
// blocking ones first.
func (v *visit) needs(repos []ledger.Repo) ([]need, error) {
	var needs []need
	budget := needAll // commits that may still be examined
	for _, r := range repos[:min(len(repos), needRepos)] {
		more, examined, err := v.commitNeeds(r, min(budget, needCommits))
		if err != nil {
			return nil, err
		}
		budget -= examined
		needs = append(needs, more...)
		if more, err = v.exceptionNeeds(r.Name); err != nil {
			return nil, err
		}
		needs = append(needs, more...)
		if more, err = v.webhookNeeds(r); err != nil {
			return nil, err
		}
		needs = append(needs, more...)
	}

	for _, list := range []func() ([]need, error){v.identityNeeds, v.tokenNeeds} {
		more, err := list()
		if err != nil {
			return nil, err
		}
		needs = append(needs, more...)
	}

	slices.SortStableFunc(needs, func(a, b need) int {
		switch {
		case a.Bad == b.Bad:
			return 0
		case a.Bad:
			return -1
		}
		return 1
	})
	return needs, nil
}

// violationNeeds returns a need for each open violation. They come before all others.
func (v *visit) violationNeeds(violations []ledger.Violation) []need {
	needs := make([]need, len(violations))
	for i, n := range violations {
		needs[i] = need{Kind: "Violation", Bad: true, Repo: n.Repo, Name: format.Short(n.Commit), Why: n.Predicate,
			By: format.PlainName(n.Identity), At: n.OpenedAt,
			Path: pathTo("orgs", v.org, "repos", n.Repo, "commits", n.Commit)}
	}
	return needs
}

// commitNeeds returns the commits in flight that are blocked by a failed
// requirement or a conflict. It examines up to limit commits, and returns how
// many it examined.
func (v *visit) commitNeeds(r ledger.Repo, limit int) (needs []need, examined int, err error) {
	var undeployed int64
	for state, n := range r.Commits {
		if state != ledger.Deployed {
			undeployed += n
		}
	}
	if undeployed == 0 || limit == 0 {
		return nil, 0, nil
	}
	filter := client.CommitFilter{InFlight: true, Standing: true}
	list, err := filled(client.Query{Limit: limit}, func(q client.Query) (ledger.Page[ledger.CommitSummary], error) {
		return v.api.CommitsPage(v.ctx(), v.org, r.Name, filter, q)
	})
	if err != nil {
		return nil, 0, err
	}

	for _, c := range list.Data {
		n := need{
			Bad: true, Repo: r.Name, Name: cmp.Or(format.FirstLine(c.Message), format.Short(c.SHA)),
			Path: pathTo("orgs", v.org, "repos", r.Name, "commits", c.SHA), At: c.StateSince,
		}
		for _, m := range c.Missing {
			if len(m.FailedBy) > 0 {
				n.Kind, n.Why, n.By = "Failed", m.Predicate, format.PlainName(m.FailedBy[0])
				break
			}
		}
		if high := c.Overlaps[radar.High.String()]; high > 0 && n.Kind == "" {
			n.Kind, n.Why = "Conflict", "conflicts with "+format.Plural(high, "other commit")
			if c.OverlapsTruncated {
				n.Why = "conflicts with at least " + format.Plural(high, "other commit")
			}
		}
		if n.Kind != "" {
			needs = append(needs, n)
		}
	}
	return needs, len(list.Data), nil
}

// webhookNeeds returns the webhooks that ledgerd disabled, and those that are
// failing.
func (v *visit) webhookNeeds(r ledger.Repo) ([]need, error) {
	if !v.may(ledger.Admin) {
		return nil, nil
	}
	hooks, err := v.api.WebhooksPage(v.ctx(), v.org, r.Name, client.Query{})
	if err != nil {
		return nil, err
	}

	var needs []need
	for _, w := range hooks.Data {
		n := need{Repo: r.Name, Name: w.URL, Path: pathTo("orgs", v.org, "repos", r.Name, "webhooks", w.ID)}
		switch {
		case !w.Active && w.DisabledReason != "":
			n.Kind, n.Bad, n.At, n.Why = "Webhook disabled", true, w.DisabledAt, w.DisabledReason
		case w.Active && w.FailingSince != 0:
			n.Kind, n.At = "Webhook failing", w.FailingSince
		default:
			continue
		}
		needs = append(needs, n)
	}
	return needs, nil
}

// identityNeeds returns the keys and roots that expire soon or expired recently.
func (v *visit) identityNeeds() ([]need, error) {
	identities, err := v.api.IdentitiesPage(v.ctx(), v.org, client.Query{Limit: needRows})
	if err != nil {
		return nil, err
	}

	var needs []need
	now := v.site.now()
	for _, i := range identities.Data {
		if i.RevokedAt != 0 || i.NotAfter == 0 || i.NotAfter > now.Add(keyExpiresSoon) ||
			i.NotAfter < now.Add(-keyExpiresSoon) {
			continue
		}
		n := need{Kind: "Key", Name: i.DN, At: i.NotAfter, Path: v.pathOf(identitiesPattern)}
		if i.Kind == identity.RootIdentity {
			n.Kind = "Root"
		}
		if n.Bad = i.NotAfter <= now; n.Bad {
			n.Kind += " expired"
		} else {
			n.Kind += " expires"
		}
		needs = append(needs, n)
	}
	return needs, nil
}

// tokenNeeds returns the tokens that expire soon.
func (v *visit) tokenNeeds() ([]need, error) {
	if !v.may(ledger.Admin) {
		return nil, nil
	}
	tokens, err := v.api.TokensPage(v.ctx(), v.org, client.Query{Limit: needRows})
	if err != nil {
		return nil, err
	}

	var needs []need
	now := v.site.now()
	for _, t := range tokens.Data {
		if t.RevokedAt == 0 && t.ExpiresAt > now && t.ExpiresAt < now.Add(tokenExpiresSoon) {
			needs = append(needs, need{Kind: "Token expires", Name: t.Name, At: t.ExpiresAt, Path: v.pathOf(tokensPattern)})
		}
	}
	return needs, nil
}

// violationsShown is the number of violations on a page of their list.
const violationsShown = 50

// A violationsPage lists the violations of an org, or of a repo.
type violationsPage struct {
	At         string // path of the page
	All        bool   // also those that are closed
	Violations []ledger.Violation
	Older      string
}

func showViolations(v *visit) (*response, error) {
	page := violationsPage{At: v.r.URL.EscapedPath(), All: v.query("status") == "all"}
	f := client.ViolationFilter{Repo: v.repo, Status: ledger.ViolationOpen}
	if page.All {
		f.Status = ""
	}
	list, err := v.api.ViolationsPage(v.ctx(), v.org, f, client.Query{Limit: violationsShown, Cursor: v.query("cursor")})
	if err != nil {
		return nil, err
	}
	page.Violations, page.Older = list.Data, nextPage(v, list.NextCursor)
	return v.livePage("violations", "Violations", page, ledger.EventViolation), nil
}

// endsSoon returns how soon an exception ends, such as "ends in 5 hours". It is empty if
// the exception has ended, or does not end within a day.
func (s *Site) endsSoon(until ledger.Time) string {
	switch left := until.Sub(s.now()); {
	case left <= 0 || left > exceptionEndsSoon:
		return ""
	case left < time.Hour:
		return "ends in " + format.Plural(int64(left/time.Minute), "minute")
	default:
		return "ends in " + format.Plural(int64(left/time.Hour), "hour")
	}
}

// exceptionNeeds returns the exceptions of a repo that end soon, those that end first
// first.
func (v *visit) exceptionNeeds(repo string) ([]need, error) {
	filter := client.ExceptionFilter{Active: true}
	list, err := v.api.ExceptionsPage(v.ctx(), v.org, repo, filter, client.Query{Limit: endingExceptions})
	if err != nil {
		return nil, err
	}

	var needs []need
	for _, x := range list.Data {
		if ends := v.site.endsSoon(x.Until); ends != "" {
			needs = append(needs, need{Kind: "Exception ends", Repo: repo, Name: x.Requirement + " of " + format.Short(x.Commit),
				Why: ends + ", " + x.Reason, By: format.PlainName(x.Identity),
				Path: pathTo("orgs", v.org, "repos", repo, "commits", x.Commit), At: x.Until})
		}
	}
	return needs, nil
}
