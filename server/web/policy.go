package web

import (
	"fmt"
	"strconv"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/policy/lint"
	"github.com/ledgerd/ledgerd/server/web/linediff"
	"github.com/ledgerd/ledgerd/server/web/policytext"
)

// A policyView shows one version of a repo's contract, in words and as a document.
type policyView struct {
	Policy policy.Policy
	Stages []policytext.Stage
	Radar  []policytext.Sentence
	// Targets, Exceptions and Artifacts are the other rules of the contract.
	Targets, Exceptions, Artifacts policytext.Sentence
	// Document is empty if it is longer than maxDocument. Command prints it.
	Document string
	Command  string
}

// maxDocument is the maximum size in bytes of a document on a read-only page.
const maxDocument = 96 << 10

func (v *visit) viewPolicy(p policy.Policy) policyView {
	view := policyView{
		Policy: p, Stages: policytext.Stages(p.Contract), Radar: policytext.Radar(p.Contract.Radar),
		Targets: policytext.Targets(p.Targets), Exceptions: policytext.Exceptions(p.Exceptions),
		Artifacts: policytext.Artifacts(p.Artifacts),
		Document:  policytext.Document(p.Contract),
		Command:   fmt.Sprintf("ledgerd policy show %s/%s --version %d -o json", v.org, v.repo, p.Version),
	}
	if len(view.Document) > maxDocument {
		view.Document = ""
	}
	return view
}

// A policyPage shows the active policy of a repo.
type policyPage struct {
	policyView
	// Saved reports whether the visitor has just saved this version.
	Saved  bool
	Review lint.Review
}

func showPolicy(v *visit) (*response, error) {
	policy, _, err := v.api.Policy(v.ctx(), v.org, v.repo)
	if err != nil {
		return nil, err
	}
	review, err := v.review(nil)
	if err != nil {
		return nil, err
	}
	page := policyPage{v.viewPolicy(policy), v.query("saved") == strconv.Itoa(policy.Version), review}
	return v.livePage("policy", "Policy", page, ledger.EventPolicy), nil
}

// review reviews a contract, or the active one if it is nil. If the server is too busy, it
// returns a review that says so: the rest of the page is worth more.
func (v *visit) review(contract []byte) (lint.Review, error) {
	review, err := v.api.LintPolicy(v.ctx(), v.org, v.repo, contract)
	if code := codeOf(err); code == ledger.CodeServerBusy || code == ledger.CodeTooManyRequests {
		return lint.Review{Unchecked: "the server is busy: load this page again later"}, nil
	}
	return review, err
}

// A policyVersionsPage lists the versions of a policy, newest first.
type policyVersionsPage struct {
	Versions []policyVersion
	Next     string
}

// A policyVersion is a version with its changes.
type policyVersion struct {
	policy.Summary
	Changes []policytext.Change
	// More counts the changes that are not shown.
	More int
}

const (
	versionsShown = 10 // few, because each is read in full to compute its changes
	rulesShown    = 6  // changed rules per version
)

func showPolicyVersions(v *visit) (*response, error) {
	list, err := v.api.PolicyVersionsPage(
		v.ctx(), v.org, v.repo, client.Query{Limit: versionsShown, Cursor: v.query("cursor")})
	if err != nil {
		return nil, err
	}

	page := policyVersionsPage{Next: nextPage(v, list.NextCursor)}
	var newer policy.Policy // the version before it in the list
	for i, summary := range list.Data {
		if i == 0 {
			if newer, err = v.api.PolicyVersion(v.ctx(), v.org, v.repo, summary.Version); err != nil {
				return nil, err
			}
		}
		version := policyVersion{Summary: summary}
		if summary.Version > 1 {
			older, err := v.api.PolicyVersion(v.ctx(), v.org, v.repo, summary.Version-1)
			if err != nil {
				return nil, err
			}
			version.Changes = policytext.Changes(older.Contract, newer.Contract)
			newer = older
		}
		if version.More = max(len(version.Changes)-rulesShown, 0); version.More > 0 {
			version.Changes = version.Changes[:rulesShown]
		}
		page.Versions = append(page.Versions, version)
	}
	return v.livePage("policy-versions", "Policy history", page, ledger.EventPolicy), nil
}

// A policyVersionPage shows a version and its difference from another.
type policyVersionPage struct {
	policyView
	// Against is the other version, or 0 for none. Diff is from it to this version.
	Against int
	Diff    []linediff.Line
}

func showPolicyVersion(v *visit) (*response, error) {
	number, err := versionNumber(v.value("version"))
	if err != nil {
		return nil, err
	}
	policy, err := v.api.PolicyVersion(v.ctx(), v.org, v.repo, number)
	if err != nil {
		return nil, err
	}

	page := policyVersionPage{policyView: v.viewPolicy(policy), Against: number - 1}
	if given := v.query("against"); given != "" {
		if page.Against, err = versionNumber(given); err != nil {
			return nil, err
		}
	}
	if page.Against > 0 {
		other, err := v.api.PolicyVersion(v.ctx(), v.org, v.repo, page.Against)
		if err != nil {
			return nil, err
		}
		page.Diff = linediff.Diff(policytext.Document(other.Contract), policytext.Document(policy.Contract))
	}
	return v.page("policy-version", "Policy version "+strconv.Itoa(number), page), nil
}

func versionNumber(text string) (int, error) {
	number, err := strconv.Atoi(text)
	if err != nil || number < 1 {
		return 0, ledger.Errorf(ledger.CodeNotFound, "policy version %q not found: versions start at 1", text)
	}
	return number, nil
}
