package commits

import (
	"strings"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web/commitview"
	"github.com/ledgerd/ledgerd/server/web/page"
)

const listedAttestations = 50 // on a page of the list

// A listPage lists the attestations of a repo, newest first.
type listPage struct {
	Form     *page.Form
	Statuses []page.Choice
	Rows     []commitview.Row
	Next     string
	Filtered bool
	// Unread reports whether the filter could not be applied.
	Unread bool
}

func listAttestations(v *page.Visit) (*page.Response, error) {
	p := listPage{Form: page.NewForm(), Statuses: page.Choices("", "All results")}
	for _, s := range ledger.Statuses() {
		p.Statuses = append(p.Statuses, page.Choice{Value: string(s), Label: string(s)})
	}
	for _, name := range []string{"predicate", "signer", "status", "since", "commit"} {
		value := strings.TrimSpace(v.Query(name))
		p.Form.Values.Set(name, value)
		p.Filtered = p.Filtered || value != ""
	}

	err := p.read(v)
	if err != nil && !explainFilter(p.Form, err) {
		return nil, err
	}
	resp := v.Page("attestations", "Attestations", p)
	if p.Form.Failed() {
		p.Unread = true
		resp = page.Again(p.Form, v.Page("attestations", "Attestations", p))
	}
	return resp, nil
}

// read fetches the requested page of the list.
func (p *listPage) read(v *page.Visit) error {
	f := client.AttestationFilter{Predicate: p.Form.Get("predicate"), Identity: p.Form.Get("signer"),
		Status: ledger.Status(p.Form.Get("status")), Commit: p.Form.Get("commit"), Verification: true}
	if text := p.Form.Get("since"); text != "" {
		since, err := ledger.ParseSince(text)
		if err != nil {
			p.Form.Fail("since", err.Error())
			return nil
		}
		f.Since = since
	}

	list, err := page.Filled(client.Query{Limit: listedAttestations, Cursor: v.Query("cursor")},
		func(q client.Query) (ledger.Page[ledger.AttestationRecord], error) {
			return v.API.AttestationsPage(v.Ctx(), v.Org, v.Repo, f, q)
		})
	if err != nil {
		return err
	}
	p.Rows, p.Next = commitview.Rows(list.Data), v.NextPage(list.NextCursor)
	return nil
}

// explainFilter puts an error about the filter on the field. It reports whether it is one.
func explainFilter(f *page.Form, err error) bool {
	if page.ExplainCommit(f, err) {
		return true
	}
	if !f.Explain(err) {
		return false
	}
	if message, ok := f.Errors["identity"]; ok { // the name that the API has for it
		f.Fail("signer", message)
		delete(f.Errors, "identity")
	}
	return true
}
