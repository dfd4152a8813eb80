package web

import (
	"cmp"
	"fmt"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
)

// A need is something that waits for somebody.
type need struct {
	Kind string
	Bad  bool // nothing goes on until somebody does it
	Text string
	Path string // of the page about it
	At   ledger.Time
}

// How much is looked at for what needs somebody.
const (
	needRepos    = 25
	needCommits  = 20 // in flight, of each repo
	needsShown   = 12
	soonKeyEnds  = 14 * 24 * time.Hour
	soonTokenOut = 7 * 24 * time.Hour
)

// needs finds what the repos and the org need somebody for, as far as the
// visitor may know of it.
func (v *visit) needs(repos []ledger.Repo) ([]need, error) {
	var found []need
	for _, r := range repos[:min(len(repos), needRepos)] {
		for _, look := range []func(ledger.Repo) ([]need, error){v.commitNeeds, v.webhookNeeds} {
			more, err := look(r)
			if err != nil {
				return nil, err
			}
			found = append(found, more...)
		}
	}
	for _, look := range []func() ([]need, error){v.identityNeeds, v.tokenNeeds} {
		more, err := look()
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return found[:min(len(found), needsShown)], nil
}

// commitNeeds finds the commits in flight that a failed check or a conflict
// keeps from the next state.
func (v *visit) commitNeeds(r ledger.Repo) ([]need, error) {
	if r.Attestations == 0 && r.Commits[ledger.Draft] == 0 {
		return nil, nil
	}
	filter := client.CommitFilter{InFlight: true, Standing: true}
	list, err := v.api.CommitsPage(v.ctx(), v.org, r.Name, filter, client.Query{Limit: needCommits})
	if err != nil {
		return nil, err
	}
	var found []need
	for _, c := range list.Data {
		n := need{Bad: true, Path: pathTo("orgs", v.org, "repos", r.Name, "commits", c.SHA), At: c.StateSince}
		name := r.Name + " " + cmp.Or(firstLine(c.Message), short(c.SHA))
		for _, m := range c.Missing {
			if len(m.FailedBy) > 0 {
				n.Kind, n.Text = "Failed", fmt.Sprintf("%s: %s by %s", name, m.Predicate, plainName(m.FailedBy[0]))
				break
			}
		}
		if high := c.Overlaps[ledger.High.String()]; high > 0 && n.Kind == "" {
			n.Kind, n.Text = "Collides", fmt.Sprintf("%s: git could not merge it with %s", name, plural(high, "other commit"))
		}
		if n.Kind != "" {
			found = append(found, n)
		}
	}
	return found, nil
}

// webhookNeeds finds the webhooks that ledgerd has given up, and those that fail.
func (v *visit) webhookNeeds(r ledger.Repo) ([]need, error) {
	if !v.may(ledger.Admin) {
		return nil, nil
	}
	hooks, err := client.Collect(v.api.Webhooks(v.ctx(), v.org, r.Name), 0)
	if err != nil {
		return nil, err
	}
	var found []need
	for _, w := range hooks {
		n := need{Path: pathTo("orgs", v.org, "repos", r.Name, "webhooks", w.ID)}
		switch {
		case !w.Active && w.DisabledReason != "":
			n.Kind, n.Bad, n.At, n.Text = "Webhook off", true, w.DisabledAt, fmt.Sprintf("%s %s: %s", r.Name, w.URL, w.DisabledReason)
		case w.Active && w.FailingSince != 0:
			n.Kind, n.At, n.Text = "Webhook fails", w.FailingSince, fmt.Sprintf("%s %s", r.Name, w.URL)
		default:
			continue
		}
		found = append(found, n)
	}
	return found, nil
}

// identityNeeds finds the keys and roots that end soon or have ended.
func (v *visit) identityNeeds() ([]need, error) {
	identities, err := client.Collect(v.api.Identities(v.ctx(), v.org), 0)
	if err != nil {
		return nil, err
	}
	var found []need
	now := v.site.now()
	for _, i := range identities {
		if i.RevokedAt != 0 || i.NotAfter == 0 || i.NotAfter > now.Add(soonKeyEnds) || i.NotAfter < now.Add(-soonKeyEnds) {
			continue
		}
		n := need{Kind: "Key ends", Text: i.DN, At: i.NotAfter, Path: v.pathOf(identitiesPattern)}
		if n.Bad = i.NotAfter <= now; n.Bad {
			n.Kind = "Key ended"
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
	tokens, err := client.Collect(v.api.Tokens(v.ctx(), v.org), 0)
	if err != nil {
		return nil, err
	}
	var found []need
	now := v.site.now()
	for _, t := range tokens {
		if t.RevokedAt == 0 && t.ExpiresAt > now && t.ExpiresAt < now.Add(soonTokenOut) {
			found = append(found, need{Kind: "Token expires", Text: t.Name, At: t.ExpiresAt, Path: v.pathOf(tokensPattern)})
		}
	}
	return found, nil
}
