package browse

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"slices"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web/page"
)

const (
	activityShown = 50
	// activityBytes is the limit for all raw events of a page, escaped for HTML. A
	// single radar event can have 256 KiB.
	activityBytes = 128 << 10
)

// An activityPage shows the events of an org, newest first.
type activityPage struct {
	Form   *page.Form
	Types  []page.Choice
	Repos  []page.Choice
	Events []activityRow
	Next   string
	// Older reports whether this is not the first page. Only the first is live.
	Older bool
	// Filtered reports whether a filter is set.
	Filtered bool
}

// An activityEvent is an event with its raw bytes. If they exceed the limit of
// the page, Raw is empty and Command prints them.
type activityEvent struct {
	page.EventRow // of one event
	Raw           string
	Size          int
	Command       string
}

// An activityRow is a row of the list: a single event, or the overlaps that share it.
type activityRow struct {
	page.EventRow
	Single []activityEvent // one, or none
	Raws   []activityEvent
}

// rowsOf returns the rows of a list of events.
func rowsOf(org string, events []page.Event) []activityRow {
	shown := withRaw(org, events)
	var rows []activityRow
	for _, r := range page.Fold(events) {
		row := activityRow{EventRow: r}
		if n := len(r.Overlaps); n > 0 {
			row.Raws, shown = shown[:n], shown[n:]
		} else {
			row.Single, shown = shown[:1], shown[1:]
		}
		rows = append(rows, row)
	}
	return rows
}

func showActivity(v *page.Visit) (*page.Response, error) {
	f, types, err := activityFilter(v)
	if err != nil {
		return nil, err
	}

	p := activityPage{Form: page.NewForm("repo", f.Repo), Older: v.Query("cursor") != "",
		Filtered: f.Repo != "" || len(types) > 0}
	for _, t := range ledger.EventTypesFor(ledger.Read) {
		p.Types = append(p.Types, page.Choice{Value: string(t), Label: string(t)})
	}
	for _, t := range types {
		p.Form.Values.Add("type", string(t))
	}
	if p.Repos, err = v.RepoChoices(f.Repo); err != nil {
		return nil, err
	}

	list, err := page.Filled(client.Query{Limit: activityShown, Cursor: v.Query("cursor")},
		func(q client.Query) (ledger.Page[json.RawMessage], error) {
			return v.API.EventsPage(v.Ctx(), v.Org, f, q)
		})
	if err != nil {
		return nil, err
	}
	events, err := page.ReadEvents(list.Data)
	if err != nil {
		return nil, err
	}
	p.Events, p.Next = rowsOf(v.Org, events), v.NextPage(list.NextCursor)
	if p.Older {
		return v.Page("activity", "Activity", p), nil
	}
	return v.LivePage("activity", "Activity", p, f.Types...), nil
}

// activityFilter returns the filter of the request. types are the chosen event
// types, empty for all.
func activityFilter(v *page.Visit) (f client.EventFilter, types []ledger.EventType, err error) {
	for _, name := range v.Request.URL.Query()["type"] {
		t, err := ledger.ParseEventType(name)
		if err != nil {
			return f, nil, ledger.FieldErrorf(ledger.CodeInvalidField, "type", "%v", err)
		}
		if t.Scope() > ledger.Read {
			return f, nil, ledger.FieldErrorf(ledger.CodeInvalidField, "type",
				"events of type %s are on the page Audit of the settings", t)
		}
		if !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	f = client.EventFilter{Types: types, Repo: v.Query("repo"), NewestFirst: true}
	if len(types) == 0 {
		f.Types = ledger.EventTypesFor(ledger.Read)
	}
	return f, types, nil
}

// withRaw adds raw bytes to the events of a page, to the small ones first, so
// that as many events as possible have them. The events are in the order of the
// page, newest first. Command starts after the next older one: no other event of
// the same type and repo is between them.
func withRaw(org string, events []page.Event) []activityEvent {
	shown := make([]activityEvent, len(events))
	bySize := make([]int, len(events))
	for i, e := range events {
		shown[i] = activityEvent{EventRow: page.EventRow{Event: e}, Size: len(e.Body)}
		bySize[i] = i
	}
	slices.SortStableFunc(bySize, func(a, b int) int { return cmp.Compare(shown[a].Size, shown[b].Size) })

	room := activityBytes
	for _, i := range bySize {
		e := &shown[i]
		if room -= len(template.HTMLEscapeString(string(e.Body))); room >= 0 {
			e.Raw = string(e.Body)
			continue
		}
		e.Command = fmt.Sprintf("ledgerd events %s --types %s", org, e.Type)
		if e.Repo != "" {
			e.Command += " --repo " + e.Repo
		}
		if i+1 < len(events) {
			e.Command += " --since-id " + events[i+1].ID + " --limit 1"
		}
		e.Command += " -o json"
	}
	return shown
}
