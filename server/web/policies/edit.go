package policies

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/policy/document"
	"github.com/ledgerd/ledgerd/ledger/policy/lint"
	"github.com/ledgerd/ledgerd/server/web/format"
	"github.com/ledgerd/ledgerd/server/web/page"
	"github.com/ledgerd/ledgerd/server/web/policytext"
)

// A policyEditPage is the policy editor.
type policyEditPage struct {
	Form *page.Form
	// Active is the policy that saving replaces. ETag is its ETag.
	Active policy.Policy
	ETag   string
	Faults []*document.Error
	// Preview is the result of a simulation; nil if none was requested.
	Preview *preview
	// Stale reports whether Active was saved after the visitor started editing.
	// Upstream is the difference from the version edited to Active.
	Stale    bool
	Upstream []policytext.Line
}

// A preview shows what saving a contract would change.
type preview struct {
	Evaluated int64
	Total     int64
	Sums      []ledger.MoveSum
	// Moves are the first of the Total moves.
	Moves []move
	// Diff is from the active contract to this one; empty if they are equal.
	Diff   []policytext.Line
	Review lint.Review
}

// Shown returns the number of moves that the page shows.
func (p *preview) Shown() int64 { return int64(len(p.Moves)) }

// A move is a commit that would change state. Why are the first reasons, and
// More counts the others.
type move struct {
	ledger.Move
	Why  []string
	More int
}

const (
	movesShown   = 100 // commits in a preview
	reasonsShown = 3   // per commit
)

// NextVersion returns the version that saving the contract creates.
func (p policyEditPage) NextVersion() int { return p.Active.Version + 1 }

func editPolicy(v *page.Visit) (*page.Response, error) {
	policy, etag, err := v.API.Policy(v.Ctx(), v.Org, v.Repo)
	if err != nil {
		return nil, err
	}
	f := page.NewForm("etag", etag, "version", strconv.Itoa(policy.Version), "document", documentOf(policy.Contract))
	return editor(v, policyEditPage{Form: f, Active: policy, ETag: etag}), nil
}

func editor(v *page.Visit, p policyEditPage) *page.Response {
	return v.Page("policy-edit", "Edit policy", p)
}

// changePolicy previews or saves the contract of the form.
func changePolicy(v *page.Visit) (*page.Response, error) {
	f := v.Form()
	f.Values.Set("document", strings.ReplaceAll(f.Get("document"), "\r\n", "\n"))
	p := policyEditPage{Form: f}
	var err error
	if p.Active, p.ETag, err = v.API.Policy(v.Ctx(), v.Org, v.Repo); err != nil {
		return nil, err
	}
	switch f.Get("do") {
	case "save":
		return savePolicy(v, p, f.Get("etag"))
	case "replace": // a version saved in the meantime, after the visitor has seen it
		return savePolicy(v, p, f.Get("seen"))
	}
	return previewPolicy(v, p)
}

func previewPolicy(v *page.Visit, p policyEditPage) (*page.Response, error) {
	draft, ok := p.parse()
	if !ok {
		return page.Again(p.Form, editor(v, p)), nil
	}
	simulation, err := v.API.Simulate(v.Ctx(), v.Org, v.Repo, draft.JSON())
	if p.explain(draft, err) {
		return page.Again(p.Form, editor(v, p)), nil
	}
	if err != nil {
		return nil, err
	}

	p.Preview = previewOf(simulation)
	if p.Preview.Review, err = review(v, draft.JSON()); err != nil {
		return nil, err
	}
	if contract, err := draft.Contract(); err == nil {
		p.Preview.Diff = policytext.Diff(documentOf(p.Active.Contract), documentOf(contract))
	}
	if p.Form.Get("etag") != p.ETag {
		return stale(v, p)
	}
	return editor(v, p), nil
}

func previewOf(s ledger.Simulation) *preview {
	p := &preview{Evaluated: s.Evaluated, Total: s.Total(), Sums: s.Sums}
	for _, m := range s.Moves[:min(len(s.Moves), movesShown)] {
		shown := move{Move: m}
		for _, reason := range m.Reasons[:min(len(m.Reasons), reasonsShown)] {
			shown.Why = append(shown.Why, format.Clip(reason, 300))
		}
		shown.More = len(m.Reasons) - len(shown.Why)
		p.Moves = append(p.Moves, shown)
	}
	return p
}

// savePolicy makes the contract the active policy if the active one still has
// the ETag.
func savePolicy(v *page.Visit, p policyEditPage, etag string) (*page.Response, error) {
	f := p.Form
	draft, ok := p.parse()
	if !ok {
		return page.Again(f, editor(v, p)), nil
	}
	if draft.Is(p.Active.Digest) {
		f.Problem = "No changes: this is the active version " + strconv.Itoa(p.Active.Version) + "."
		return page.Again(f, editor(v, p)), nil
	}
	if strings.ContainsFunc(etag, func(r rune) bool { return r < ' ' || r > '~' }) {
		etag = "" // never sent by a page
	}

	saved, err := v.API.SetPolicy(v.Ctx(), v.Org, v.Repo, draft.JSON(), etag)
	switch {
	case err == nil:
		return page.SeeOther(v.PathOf(page.PolicyPattern) + "?saved=" + strconv.Itoa(saved.Version)), nil
	case page.CodeOf(err) == ledger.CodePreconditionFailed:
		p.explain(draft, err)
		f.Problem = ""
		if p.Active, p.ETag, err = v.API.Policy(v.Ctx(), v.Org, v.Repo); err != nil {
			return nil, err
		}
		return stale(v, p)
	case p.explain(draft, err):
		return page.Again(f, editor(v, p)), nil
	}
	return nil, err
}

// stale shows the form again, with the changes saved by others since the visitor
// started editing.
func stale(v *page.Visit, p policyEditPage) (*page.Response, error) {
	p.Stale = true
	if number, err := strconv.Atoi(p.Form.Get("version")); err == nil && number > 0 {
		base, err := v.API.PolicyVersion(v.Ctx(), v.Org, v.Repo, number)
		if err != nil && page.CodeOf(err) != ledger.CodeNotFound {
			return nil, err
		}
		if err == nil {
			p.Upstream = policytext.Diff(documentOf(base.Contract), documentOf(p.Active.Contract))
		}
	}
	resp := editor(v, p)
	resp.Status = p.Form.Status
	return resp, nil
}

// parse reads the document of the form. If it cannot be read, parse adds the error and
// returns false.
func (p *policyEditPage) parse() (document.Document, bool) {
	draft, err := document.Parse(p.Form.Get("document"))
	if e, ok := errors.AsType[*document.Error](err); ok {
		p.fail(e)
	}
	return draft, err == nil
}

// fail adds errors about the document, by their lines.
func (p *policyEditPage) fail(faults ...*document.Error) {
	slices.SortStableFunc(faults, func(a, b *document.Error) int { return cmp.Compare(a.Line, b.Line) })
	p.Faults = faults
	p.Form.Fail("document", format.Plural(len(faults), "error")+": see the list above")
}

// explain adds the API's errors about a document, with their lines. It reports whether the
// visitor can correct the error.
func (p *policyEditPage) explain(draft document.Document, err error) bool {
	e, ok := errors.AsType[*client.Error](err)
	if !ok || !p.Form.Explain(err) {
		return false
	}

	p.Form.Errors, p.Form.Problem = nil, ""
	var faults []*document.Error
	switch {
	case e.Problem.Code == ledger.CodeInvalidJSON && draft.Broken():
		faults = append(faults, draft.Explain("", e.Problem.Detail))
	case len(e.Problem.Errors) == 0:
		p.Form.Problem = e.Problem.Detail
		return true
	}
	for _, field := range e.Problem.Errors {
		if e.Problem.Code != ledger.CodeInvalidJSON {
			faults = append(faults, draft.Explain(field.Field, field.Message))
		}
	}
	p.fail(faults...)
	return true
}
