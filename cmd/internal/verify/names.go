package verify

import (
	"context"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
)

// checkNames is the name of the check of former names.
const checkNames = "names"

// names has the names that a repo had, as the ledger says. Events have the name of their time.
type names struct {
	org, repo string
	former    []ledger.FormerName
	created   ledger.Time // events before are of another repo, which had the name
}

// namesOf asks the ledger for the names of a repo.
func (s *Session) namesOf(ctx context.Context, repo string) (names, error) {
	r, err := s.client.Repo(ctx, s.Org, repo)
	return names{org: s.Org, repo: r.Name, former: r.FormerNames, created: r.CreatedAt}, err
}

// isRepo reports whether an event is one of the repo, by the name that the repo had at that time.
func (n names) isRepo(e logged) bool { return n.hasName(e) && e.leaf.At >= n.created }

// hasName reports whether an event has the name that the repo had at that time.
func (n names) hasName(e logged) bool {
	return strings.EqualFold(e.about.Repo, ledger.NameAt(n.former, n.repo, e.index))
}

// had reports whether the repo has or had a name.
func (n names) had(name string) bool {
	return strings.EqualFold(name, n.repo) ||
		slices.ContainsFunc(n.former, func(f ledger.FormerName) bool { return strings.EqualFold(name, f.Name) })
}

// align gives a record the name that its event has, if the repo has or had it.
func (n names) align(record *ledger.AttestationRecord, event about) {
	if n.had(event.Repo) {
		record.Repo = event.Repo
	}
}

// checks returns a check for each name that was taken from the ledger, if any. others is the number
// of events that have the name of the repo, and are from before its creation.
func (n names) checks(others int64) []verify.Check {
	var list []verify.Check
	for _, f := range n.former {
		list = append(list, verify.Skipped(checkNames,
			"by the ledger, %s/%s was called %s for the first %d events of the org",
			n.org, n.repo, f.Name, f.Events))
	}
	if others > 0 {
		list = append(list, verify.Skipped(checkNames,
			"by the ledger, %d events are of another repo that was called %s/%s before %s", others, n.org, n.repo, n.created))
	}
	return list
}
