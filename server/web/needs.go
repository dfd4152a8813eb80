package web

import (
	"cmp"
	"slices"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/server/web/format"
)

// A need is something that waits for somebody.
type need struct {
	Kind string
	Bad  bool // nothing goes on until somebody does it
	Repo string
	// Name is what it is about, and Why and By say more where they are not
	// empty: texts of others, each of which stays in its place.
	Name, Why, By string
	Path          string // of the page about it
	At            ledger.Time
}

// How much is looked at for what needs somebody.
const (
	needRepos     = 25
	needCommits   = 20  // in flight, of each repo
	needAll       = 100 // commits of all repos: what each misses costs the most of the page
	needRows      = 500 // of tokens, or of identities: a page of the API
	needsShown    = 12
	allNeedsShown = 200 // if the visitor asks for all
	soonKeyEnds   = 14 * 24 * time.Hour
	soonTokenOut  = 7 * 24 * time.Hour
)

// needs finds what the repos and the org need somebody for, as far as the
// visitor may know of it: what nothing goes on without comes first.
func (v *visit) needs(repos []ledger.Repo) ([]need, error) {
	var found []need
	commits := needAll // that may still be looked at
	for _, r := range repos[:min(len(repos), needRepos)] {
		more, looked, err := v.commitNeeds(r, min(commits, needCommits))
		if err != nil {
			return nil, err
		}
		commits -= looked
		found = append(found, more...)
		if more, err = v.webhookNeeds(r); err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	for _, look := range []func() ([]need, error){v.identityNeeds, v.tokenNeeds} {
		more, err := look()
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	slices.SortStableFunc(found, func(a, b need) int {
		switch {
		case a.Bad == b.Bad:
			return 0
		case a.Bad:
			return -1
		}
		return 1
	})
	return found, nil
}

// commitNeeds finds the commits in flight that a failed check or a conflict
// keeps from the next state. It looks at no more than most, and tells at how many.
func (v *visit) commitNeeds(r ledger.Repo, most int) (found []need, looked int, err error) {
	var below int64 // commits that have a state before them
	for state, n := range r.Commits {
		if state != ledger.Deployed {
			below += n
		}
	}
	if below == 0 || most == 0 {
		return nil, 0, nil
	}
	filter := client.CommitFilter{InFlight: true, Standing: true}
	list, err := v.api.CommitsPage(v.ctx(), v.org, r.Name, filter, client.Query{Limit: most})
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
			found = append(found, n)
		}
	}
	return found, len(list.Data), nil
}

// webhookNeeds finds the webhooks that ledgerd has given up, and those that fail.
func (v *visit) webhookNeeds(r ledger.Repo) ([]need, error) {
	if !v.may(ledger.Admin) {
		return nil, nil
	}
	hooks, err := v.api.WebhooksPage(v.ctx(), v.org, r.Name, client.Query{})
	if err != nil {
		return nil, err
	}
	var found []need
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
		found = append(found, n)
	}
	return found, nil
}

// identityNeeds finds the keys and roots that end soon or have ended.
func (v *visit) identityNeeds() ([]need, error) {
	identities, err := v.api.IdentitiesPage(v.ctx(), v.org, client.Query{Limit: needRows})
	if err != nil {
		return nil, err
	}
	var found []need
	now := v.site.now()
	for _, i := range identities.Data {
		if i.RevokedAt != 0 || i.NotAfter == 0 || i.NotAfter > now.Add(soonKeyEnds) || i.NotAfter < now.Add(-soonKeyEnds) {
			continue
		}
		n := need{Kind: "Key expires", Name: i.DN, At: i.NotAfter, Path: v.pathOf(identitiesPattern)}
		if n.Bad = i.NotAfter <= now; n.Bad {
			n.Kind = "Key expired"
		}
		found = append(found, n)
	}
	return found, nil
}

// tokenNeeds finds the tokens that expire soon.
func (v *visit) tokenNeeds() ([]need, error) {
	if !v.may(ledger.Admin) {
		return nil, nil
	}
	tokens, err := v.api.TokensPage(v.ctx(), v.org, client.Query{Limit: needRows})
	if err != nil {
		return nil, err
	}
	var found []need
	now := v.site.now()
	for _, t := range tokens.Data {
		if t.RevokedAt == 0 && t.ExpiresAt > now && t.ExpiresAt < now.Add(soonTokenOut) {
			found = append(found, need{Kind: "Token expires", Name: t.Name, At: t.ExpiresAt, Path: v.pathOf(tokensPattern)})
		}
	}
	return found, nil
}
