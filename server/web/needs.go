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
	"github.com/ledgerd/ledgerd/server/web/page"
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

	endingExceptions = 20 // exceptions that end soon, per repo
)

// needs returns the needs of the repos and the org that the visitor may see,
// blocking ones first.
func needs(v *page.Visit, repos []ledger.Repo) ([]need, error) {
	var needs []need
	budget := needAll // commits that may still be examined
	for _, r := range repos[:min(len(repos), needRepos)] {
		more, examined, err := commitNeeds(v, r, min(budget, needCommits))
		if err != nil {
			return nil, err
		}
		budget -= examined
		needs = append(needs, more...)
		if more, err = exceptionNeeds(v, r.Name); err != nil {
			return nil, err
		}
		needs = append(needs, more...)
		if more, err = webhookNeeds(v, r); err != nil {
			return nil, err
		}
		needs = append(needs, more...)
	}

	for _, list := range []func(*page.Visit) ([]need, error){identityNeeds, tokenNeeds} {
		more, err := list(v)
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
func violationNeeds(v *page.Visit, violations []ledger.Violation) []need {
	needs := make([]need, len(violations))
	for i, n := range violations {
		needs[i] = need{Kind: "Violation", Bad: true, Repo: n.Repo, Name: format.Short(n.Commit), Why: n.Predicate,
			By: format.PlainName(n.Identity), At: n.OpenedAt,
			Path: page.PathTo("orgs", v.Org, "repos", n.Repo, "commits", n.Commit)}
	}
	return needs
}

// commitNeeds returns the commits in flight that are blocked by a failed
// requirement or a conflict. It examines up to limit commits, and returns how
// many it examined.
func commitNeeds(v *page.Visit, r ledger.Repo, limit int) (needs []need, examined int, err error) {
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
	list, err := page.Filled(client.Query{Limit: limit}, func(q client.Query) (ledger.Page[ledger.CommitSummary], error) {
		return v.API.CommitsPage(v.Ctx(), v.Org, r.Name, filter, q)
	})
	if err != nil {
		return nil, 0, err
	}

	for _, c := range list.Data {
		n := need{
			Bad: true, Repo: r.Name, Name: cmp.Or(format.FirstLine(c.Message), format.Short(c.SHA)),
			Path: page.PathTo("orgs", v.Org, "repos", r.Name, "commits", c.SHA), At: c.StateSince,
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
func webhookNeeds(v *page.Visit, r ledger.Repo) ([]need, error) {
	if !v.May(ledger.Admin) {
		return nil, nil
	}
	hooks, err := v.API.WebhooksPage(v.Ctx(), v.Org, r.Name, client.Query{})
	if err != nil {
		return nil, err
	}

	var needs []need
	for _, w := range hooks.Data {
		n := need{Repo: r.Name, Name: w.URL, Path: page.PathTo("orgs", v.Org, "repos", r.Name, "webhooks", w.ID)}
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
func identityNeeds(v *page.Visit) ([]need, error) {
	identities, err := v.API.IdentitiesPage(v.Ctx(), v.Org, client.Query{Limit: needRows})
	if err != nil {
		return nil, err
	}

	var needs []need
	now := v.Now()
	for _, i := range identities.Data {
		if i.RevokedAt != 0 || i.NotAfter == 0 || i.NotAfter > now.Add(keyExpiresSoon) ||
			i.NotAfter < now.Add(-keyExpiresSoon) {
			continue
		}
		n := need{Kind: "Key", Name: i.DN, At: i.NotAfter, Path: v.PathOf(page.IdentitiesPattern)}
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
func tokenNeeds(v *page.Visit) ([]need, error) {
	if !v.May(ledger.Admin) {
		return nil, nil
	}
	tokens, err := v.API.TokensPage(v.Ctx(), v.Org, client.Query{Limit: needRows})
	if err != nil {
		return nil, err
	}

	var needs []need
	now := v.Now()
	for _, t := range tokens.Data {
		if t.RevokedAt == 0 && t.ExpiresAt > now && t.ExpiresAt < now.Add(tokenExpiresSoon) {
			needs = append(needs, need{Kind: "Token expires", Name: t.Name, At: t.ExpiresAt, Path: v.PathOf(page.TokensPattern)})
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

func showViolations(v *page.Visit) (*page.Response, error) {
	p := violationsPage{At: v.Request.URL.EscapedPath(), All: v.Query("status") == "all"}
	f := client.ViolationFilter{Repo: v.Repo, Status: ledger.ViolationOpen}
	if p.All {
		f.Status = ""
	}
	list, err := v.API.ViolationsPage(v.Ctx(), v.Org, f, client.Query{Limit: violationsShown, Cursor: v.Query("cursor")})
	if err != nil {
		return nil, err
	}
	p.Violations, p.Older = list.Data, v.NextPage(list.NextCursor)
	return v.LivePage("violations", "Violations", p, ledger.EventViolation), nil
}

// exceptionNeeds returns the exceptions of a repo that end soon, those that end first
// first.
func exceptionNeeds(v *page.Visit, repo string) ([]need, error) {
	filter := client.ExceptionFilter{Active: true}
	list, err := v.API.ExceptionsPage(v.Ctx(), v.Org, repo, filter, client.Query{Limit: endingExceptions})
	if err != nil {
		return nil, err
	}

	var needs []need
	for _, x := range list.Data {
		if ends := format.EndsSoon(x.Until, v.Now()); ends != "" {
			needs = append(needs, need{Kind: "Exception ends", Repo: repo, Name: x.Requirement + " of " + format.Short(x.Commit),
				Why: ends + ", " + x.Reason, By: format.PlainName(x.Identity),
				Path: page.PathTo("orgs", v.Org, "repos", repo, "commits", x.Commit), At: x.Until})
		}
	}
	return needs, nil
}
