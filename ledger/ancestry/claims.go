package ancestry

import (
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

// A Proven is a commit whose object is known. The zero value is one whose object is not.
type Proven struct {
	SHA, Tree string
	Parents   []string
}

// WhyRefused says why nothing carries by a claim that a commit is a clean merge, given what is known when the claim is
// recorded. It is empty if something may.
func WhyRefused(h History, c Proven, m *attestation.Merge) (string, error) {
	if c.Tree == "" {
		return "the commit's object was unknown (register it, and claim again)", nil
	}
	if why := m.WhyNot(c.Tree, c.Parents); why != "" {
		return why, nil
	}

	known, err := h.IsKnown(m.Parent.SHA)
	switch {
	case err != nil:
		return "", err
	case !known:
		return fmt.Sprintf("the object of the parent, %s, was unknown (register it, and claim again)",
			ledger.Short(m.Parent.SHA)), nil
	case m.Kind == attestation.Rebased:
		return whyNotRebased(h, c, m)
	case m.Kind == attestation.Updated:
		return whyNotUpdated(h, m, m.Updated(c.Parents))
	}
	return "", nil
}

// whyNotUpdated returns why a claim of an update does not agree with the history. branch is the parent that is not the
// mainline's.
func whyNotUpdated(h History, m *attestation.Merge, branch string) (string, error) {
	is, _, err := h.IsAncestor(m.Source.SHA, branch)
	if err != nil || is {
		return "", err
	}
	return fmt.Sprintf("%s is not known to be %s, the other parent of the commit, or an ancestor of it",
		ledger.Short(m.Source.SHA), ledger.Short(branch)), nil
}

// whyNotRebased returns why a claim of a rebase does not agree with the history.
func whyNotRebased(h History, c Proven, m *attestation.Merge) (string, error) {
	is, err := h.IsFirstParent(m.Parent.SHA, c.SHA, attestation.MaxRebased)
	if err != nil || is {
		return "", err
	}
	return fmt.Sprintf("%s is not known to be among the first %d that the commit follows by first parents",
		ledger.Short(m.Parent.SHA), attestation.MaxRebased), nil
}

// A Claim says by whom, and about which source, a claim of a merge of a commit is.
type Claim struct {
	Source string
	Person int64
}

// Latest returns those of the claims of one commit that count, which are in the order of their recording: of each
// person, the latest about each source.
func Latest[C any](claims []C, of func(*C) Claim) []C {
	last := make(map[Claim]int)
	for i := range claims {
		last[of(&claims[i])] = i
	}
	var latest []C
	for i := range claims {
		if last[of(&claims[i])] == i {
			latest = append(latest, claims[i])
		}
	}
	return latest
}
