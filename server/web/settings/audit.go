package settings

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web/page"
)

const (
	// maxDownload is the maximum number of events in a download, and maxDownloadBytes that of
	// bytes after which it has no further page.
	maxDownload      = 10_000
	maxDownloadBytes = 4 << 20
	downloadRows     = 500 // on a page
)

// An auditPage lists the administrative actions in an org, newest first.
type auditPage struct {
	Form    *page.Form
	Actions []page.Choice
	Repos   []page.Choice
	Events  []ledger.AuditEvent
	Next    string
	// Older reports whether this is not the first page.
	Older bool
	// Filtered reports whether a filter is set.
	Filtered bool
	// Download is the path of the file with the actions, of which it has at most Most.
	Download string
	Most     int
}

func showAudit(v *page.Visit) (*page.Response, error) {
	f, err := auditFilter(v)
	if err != nil {
		return nil, err
	}
	shown := auditPage{
		Form:    page.NewForm("action", string(f.Action), "by", f.By, "repo", f.Repo, "since", v.Query("since")),
		Actions: auditActions(), Older: v.Query("cursor") != "", Filtered: f != client.AuditFilter{}, Most: maxDownload,
	}
	query := v.Request.URL.Query()
	query.Del("cursor")
	shown.Download = page.WithQuery(v.PathOf(page.AuditPattern, "download"), query)
	if shown.Repos, err = v.RepoChoices(f.Repo); err != nil {
		return nil, err
	}

	list, err := page.Filled(client.Query{Limit: settingsRows, Cursor: v.Query("cursor")},
		func(q client.Query) (ledger.Page[json.RawMessage], error) {
			return v.API.AuditPage(v.Ctx(), v.Org, f, q)
		})
	if err != nil {
		return nil, err
	}
	shown.Events, shown.Next = make([]ledger.AuditEvent, len(list.Data)), v.NextPage(list.NextCursor)
	for i, body := range list.Data {
		if err := ledger.DecodeOpen(body, &shown.Events[i]); err != nil {
			return nil, fmt.Errorf("decode event: %w", err)
		}
	}
	return v.Page("audit", "Audit", shown), nil
}

// auditActions returns the choices of the filter: each kind of resource, then its actions.
func auditActions() []page.Choice {
	choices := []page.Choice{{Value: "", Label: "All actions"}}
	last := ""
	for _, action := range ledger.AuditActions() {
		kind, _, _ := strings.Cut(string(action), ".")
		if kind != last {
			choices = append(choices, page.Choice{Value: kind, Label: kind + ": all"})
			last = kind
		}
		choices = append(choices, page.Choice{Value: string(action), Label: string(action)})
	}
	return choices
}

// auditFilter returns the filter of the request.
func auditFilter(v *page.Visit) (f client.AuditFilter, err error) {
	f.By, f.Repo = strings.TrimSpace(v.Query("by")), v.Query("repo")
	if name := v.Query("action"); name != "" {
		if f.Action, err = ledger.ParseAuditAction(name); err != nil {
			return f, ledger.FieldErrorf(ledger.CodeInvalidField, "action", "%v", err)
		}
	}
	if since := v.Query("since"); since != "" {
		if f.Since, err = ledger.ParseSince(since); err != nil {
			return f, ledger.FieldErrorf(ledger.CodeInvalidField, "since", "%v", err)
		}
	}
	return f, nil
}

// downloadAudit returns the administrative actions that match the filter as JSON Lines, byte for
// byte as they were logged, newest first.
func downloadAudit(v *page.Visit) (*page.Response, error) {
	f, err := auditFilter(v)
	if err != nil {
		return nil, err
	}

	var file bytes.Buffer
	q := client.Query{Limit: downloadRows}
	for n := 0; n < maxDownload && file.Len() < maxDownloadBytes; {
		list, err := v.API.AuditPage(v.Ctx(), v.Org, f, q)
		if err != nil {
			return nil, err
		}
		for _, body := range list.Data {
			file.Write(body)
			file.WriteByte('\n')
		}
		n += max(len(list.Data), 1) // a page can be empty
		if q.Cursor = list.NextCursor; q.Cursor == "" {
			break
		}
	}
	return page.File("audit-"+url.PathEscape(v.Org)+".jsonl", "application/jsonl", file.Bytes()), nil
}
