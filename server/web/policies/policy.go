package policies

import (
	"fmt"
	"strconv"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/policy/document"
	"github.com/ledgerd/ledgerd/ledger/policy/lint"
	"github.com/ledgerd/ledgerd/server/web/page"
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

func viewPolicy(v *page.Visit, p policy.Policy) policyView {
	view := policyView{
		Policy: p, Stages: policytext.Stages(p.Contract), Radar: policytext.Radar(p.Contract.Radar),
		Targets: policytext.Targets(p.Targets), Exceptions: policytext.Exceptions(p.Exceptions),
		Artifacts: policytext.Artifacts(p.Contract),
		Document:  documentOf(p.Contract),
		Command:   fmt.Sprintf("ledgerd policy show %s/%s --version %d", v.Org, v.Repo, p.Version),
	}
	if len(view.Document) > maxDocument {
		view.Document = ""
	}
	return view
}

// documentOf returns a contract as YAML to read and edit.
func documentOf(c policy.Contract) string {
	text, err := document.YAML(c)
	if err != nil { // not expected: JSON is YAML too
		return string(c.Canonical())
	}
	return text
}

// A policyPage shows the active policy of a repo.
type policyPage struct {
	policyView
	// Saved reports whether the visitor has just saved this version.
	Saved  bool
	Review lint.Review
}

func showPolicy(v *page.Visit) (*page.Response, error) {
	policy, _, err := v.API.Policy(v.Ctx(), v.Org, v.Repo)
	if err != nil {
		return nil, err
	}
	review, err := review(v, nil)
	if err != nil {
		return nil, err
	}
	p := policyPage{viewPolicy(v, policy), v.Query("saved") == strconv.Itoa(policy.Version), review}
	return v.LivePage("policy", "Policy", p, ledger.EventPolicy), nil
}

// review reviews a contract, or the active one if it is nil. If the server is too busy, it
// returns a review that says so: the rest of the page is worth more.
func review(v *page.Visit, contract []byte) (lint.Review, error) {
	review, err := v.API.LintPolicy(v.Ctx(), v.Org, v.Repo, contract)
	if code := page.CodeOf(err); code == ledger.CodeServerBusy || code == ledger.CodeTooManyRequests {
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

func showPolicyVersions(v *page.Visit) (*page.Response, error) {
	list, err := v.API.PolicyVersionsPage(
		v.Ctx(), v.Org, v.Repo, client.Query{Limit: versionsShown, Cursor: v.Query("cursor")})
	if err != nil {
		return nil, err
	}

	p := policyVersionsPage{Next: v.NextPage(list.NextCursor)}
	var newer policy.Policy // the version before it in the list
	for i, summary := range list.Data {
		if i == 0 {
			if newer, err = v.API.PolicyVersion(v.Ctx(), v.Org, v.Repo, summary.Version); err != nil {
				return nil, err
			}
		}
		version := policyVersion{Summary: summary}
		if summary.Version > 1 {
			older, err := v.API.PolicyVersion(v.Ctx(), v.Org, v.Repo, summary.Version-1)
			if err != nil {
				return nil, err
			}
			version.Changes = policytext.Changes(older.Contract, newer.Contract)
			newer = older
		}
		if version.More = max(len(version.Changes)-rulesShown, 0); version.More > 0 {
			version.Changes = version.Changes[:rulesShown]
		}
		p.Versions = append(p.Versions, version)
	}
	return v.LivePage("policy-versions", "Policy history", p, ledger.EventPolicy), nil
}

// A policyVersionPage shows a version and its difference from another.
type policyVersionPage struct {
	policyView
	// Against is the other version, or 0 for none. Diff is from it to this version.
	Against int
	Diff    []policytext.Line
}

func showPolicyVersion(v *page.Visit) (*page.Response, error) {
	number, err := versionNumber(v.Value("version"))
	if err != nil {
		return nil, err
	}
	policy, err := v.API.PolicyVersion(v.Ctx(), v.Org, v.Repo, number)
	if err != nil {
		return nil, err
	}

	p := policyVersionPage{policyView: viewPolicy(v, policy), Against: number - 1}
	if given := v.Query("against"); given != "" {
		if p.Against, err = versionNumber(given); err != nil {
			return nil, err
		}
	}
	if p.Against > 0 {
		other, err := v.API.PolicyVersion(v.Ctx(), v.Org, v.Repo, p.Against)
		if err != nil {
			return nil, err
		}
		p.Diff = policytext.Diff(documentOf(other.Contract), documentOf(policy.Contract))
	}
	return v.Page("policy-version", "Policy version "+strconv.Itoa(number), p), nil
}

func versionNumber(text string) (int, error) {
	number, err := strconv.Atoi(text)
	if err != nil || number < 1 {
		return 0, ledger.Errorf(ledger.CodeNotFound, "policy version %q not found: versions start at 1", text)
	}
	return number, nil
}
