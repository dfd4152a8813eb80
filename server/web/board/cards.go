package board

import (
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web/commitview"
)

// A card is a commit on the board or in the list.
type card struct {
	ledger.CommitSummary
	// Branch is empty on the board if it is the default branch, as of most commits.
	Branch string
	// Needs are the first unmet requirements, without that of the radar: Counts says more.
	Needs     []commitview.Blocker
	MoreNeeds int
	Counts    []commitview.LevelCount
	// Blocked reports whether overlaps block the commit.
	Blocked bool
	// Site is the address of the commit on the forge. It can be empty.
	Site string
}

// Brief returns the first digits of the commit's id.
func (c card) Brief() string { return c.SHA[:min(len(c.SHA), 8)] }

// By returns the author's name, or the first part of the e-mail address.
func (c card) By() string {
	if c.Author.Name != "" {
		return c.Author.Name
	}
	name, _, _ := strings.Cut(c.Author.Email, "@")
	return name
}

// cardsOf returns the cards of commits, each with at most limit unmet requirements.
func cardsOf(repo ledger.Repo, commits []ledger.CommitSummary, limit int) []card {
	site := repo.Site()
	cards := make([]card, len(commits))
	for i, c := range commits {
		one := card{CommitSummary: c, Branch: c.Branch, Counts: commitview.LevelCounts(c.Overlaps), Site: site.Commit(c.SHA)}
		var missing []ledger.RequirementStatus
		for _, r := range c.Missing {
			if isRadar := r.Need == 0 && len(r.FailedBy) == 0; isRadar && one.Counts != nil {
				one.Blocked = true
				continue
			}
			missing = append(missing, r)
		}

		shown := missing[:min(len(missing), limit)]
		one.Needs, one.MoreNeeds = commitview.Blockers(shown), len(missing)-len(shown)
		cards[i] = one
	}
	return cards
}
