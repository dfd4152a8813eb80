package policy

import (
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// An Earlier is a commit that was registered before another one for the same branch, and what the contract says of it.
type Earlier struct {
	Commit string
	// Tree is its root tree, or "" if its object is not known.
	Tree         string
	Requirements []ledger.RequirementStatus
}

// MissesReview reports whether a review is missing that an earlier commit of the branch may have.
// The statuses are those that Derive returns.
func (c *Contract) MissesReview(statuses []ledger.RequirementStatus) bool {
	for i := range statuses[:min(len(statuses), len(c.Requirements))] {
		if c.Requirements[i].missesReview(&statuses[i]) {
			return true
		}
	}
	return false
}

// NoteEarlier adds to the reasons of missing reviews of a commit, which has a tree, that an earlier one has
// them, and why they do not count. The commits are given newest first.
func (c *Contract) NoteEarlier(statuses []ledger.RequirementStatus, tree string, commits []Earlier) {
	for i := range statuses[:min(len(statuses), len(c.Requirements))] {
		r, s := &c.Requirements[i], &statuses[i]
		if !r.missesReview(s) {
			continue
		}
		for _, e := range commits {
			isCounted := func(name string) bool { return slices.Contains(s.SignersCounted, name) }
			signers := slices.DeleteFunc(slices.Clone(e.Requirements[i].SignersCounted), isCounted)
			if why := r.whyNotCarried(tree, e.Tree); len(signers) > 0 && why != "" {
				s.Reason += "; " + ledger.Short(e.Commit) + ", an earlier commit of the branch, was reviewed by " +
					text.JoinFirst(signers, " and ") + ", " + why
				break
			}
		}
	}
}

// missesReview reports whether a requirement for reviews is not met. Those are for reviews that are about them
// by name, and those for which the commit's author does not count.
func (r *Requirement) missesReview(s *ledger.RequirementStatus) bool {
	isReview := r.ExcludeAuthor != AuthorCounts || strings.HasPrefix(r.Predicate, "review:")
	return isReview && s.Applies && !s.Met && r.State != ledger.Deployed
}

// whyNotCarried says why evidence does not carry by tree between commits of two trees. It is empty if it may.
func (r *Requirement) whyNotCarried(a, b string) string {
	switch {
	case a != "" && b != "" && a != b:
		return "but has another tree"
	case r.Carry&CarryTree == 0:
		return "but the requirement does not carry"
	case a == "" || b == "":
		return "but not both trees are known (to register a commit's object, run ledgerd commit register)"
	}
	return ""
}
