// Package earlier says of a missing review which earlier commit of the branch has it, and why it does not count.
package earlier

import (
	"iter"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// A Commit is one that was registered before another one for the same branch, and what the contract says of it.
type Commit struct {
	SHA string
	// Tree is its root tree, or "" if its object is not known.
	Tree         string
	Requirements []ledger.RequirementStatus
}

// MissesReview reports whether a review is missing that an earlier commit of the branch may have.
// The statuses are those that policy.Contract.Derive returns.
func MissesReview(c *policy.Contract, statuses []ledger.RequirementStatus) bool {
	for i := range statuses[:min(len(statuses), len(c.Requirements))] {
		if missesReview(&c.Requirements[i], &statuses[i]) {
			return true
		}
	}
	return false
}

// Note adds to the reasons of missing reviews of a commit, which has a tree, that an earlier one has
// them, and why they do not count. It takes the commits, newest first, until each missing review is explained.
func Note(c *policy.Contract, statuses []ledger.RequirementStatus, tree string, commits iter.Seq[Commit]) {
	var missing []int // indexes of requirements
	for i := range statuses[:min(len(statuses), len(c.Requirements))] {
		if missesReview(&c.Requirements[i], &statuses[i]) {
			missing = append(missing, i)
		}
	}
	for e := range commits {
		missing = slices.DeleteFunc(missing, func(i int) bool {
			note := noteOf(&c.Requirements[i], e, i, &statuses[i], tree)
			statuses[i].Reason += note
			return note != ""
		})
		if len(missing) == 0 {
			return
		}
	}
}

// noteOf says who has signed an earlier commit for the requirement, which is the ith, and not the commit with the
// status and the tree, and why this does not count. It is empty if nobody has, or it may count.
func noteOf(r *policy.Requirement, e Commit, i int, s *ledger.RequirementStatus, tree string) string {
	isCounted := func(name string) bool { return slices.Contains(s.SignersCounted, name) }
	signers := slices.DeleteFunc(slices.Clone(e.Requirements[i].SignersCounted), isCounted)
	why := whyNotCarried(r, tree, e.Tree)
	if len(signers) == 0 || why == "" {
		return ""
	}
	verb := "signed"
	if isOfReviews(r) {
		verb = "reviewed"
	}
	return "; " + ledger.Short(e.SHA) + ", an earlier commit of the branch, was " + verb + " by " +
		text.JoinFirst(signers, " and ") + ", " + why
}

// missesReview reports whether a requirement for reviews is not met. Those are for reviews that are about them
// by name, and those for which the commit's author does not count.
func missesReview(r *policy.Requirement, s *ledger.RequirementStatus) bool {
	isReview := r.ExcludeAuthor != policy.AuthorCounts || isOfReviews(r)
	return isReview && s.Applies && !s.Met && r.State != ledger.Deployed
}

// isOfReviews reports whether the requirement is about reviews by name.
func isOfReviews(r *policy.Requirement) bool {
	return strings.HasPrefix(r.Predicate, ledger.ReviewPrefix)
}

// whyNotCarried says why evidence does not carry by tree between commits of two trees. It is empty if it may.
func whyNotCarried(r *policy.Requirement, a, b string) string {
	switch {
	case a != "" && b != "" && a != b:
		return "but has another tree"
	case r.Carry&policy.CarryTree == 0:
		return "but the requirement does not carry"
	case a == "" || b == "":
		return "but not both trees are known (to register a commit's object, run ledgerd commit register)"
	}
	return ""
}
