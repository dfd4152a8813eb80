package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/ledger/search"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/txn"
)

// newHook creates a webhook of acme/repo for events of some types.
func newHook(t *testing.T, s *Store, repo string, kinds ...ledger.EventType) outbound.Webhook {
	t.Helper()
	n := outbound.NewWebhook{URL: "https://ci.example.com", Events: kinds}
	w, err := s.CreateWebhook(t.Context(), "acme", repo, n, "whsec_x")
	must.OK(t, err)
	return w
}

// queuedFor returns the events that are queued for a webhook, as type:id.
func queuedFor(t *testing.T, s *Store, w outbound.Webhook) (list []string) {
	t.Helper()
	_, due, err := s.Claim(t.Context(), w.ID, 10, time.Minute)
	must.OK(t, err)
	for _, d := range due {
		list = append(list, string(d.Type)+":"+d.Event)
	}
	return list
}

// listedTypes returns the types of a list's events.
func listedTypes(t *testing.T, page ledger.Page[jsontext.Value], err error) (list []string) {
	t.Helper()
	must.OK(t, err)
	for _, body := range page.Data {
		var e struct{ Type string }
		must.OK(t, ledger.DecodeOpen([]byte(strings.ReplaceAll(string(body), `"type"`, `"Type"`)), &e))
		list = append(list, e.Type)
	}
	return list
}

// An event of an org is in its history, its log and the webhooks that ask for it, and in no
// repo.
func TestOrgEvents(t *testing.T) {
	ctx := t.Context()
	s, path := newLogStore(t)
	for _, org := range []string{"acme", "other"} {
		if org != "acme" {
			_, err := s.CreateOrg(ctx, org)
			must.OK(t, err)
		}
		_, err := s.CreateRepo(ctx, org, ledger.NewRepo{Name: "web"}, "admin")
		must.OK(t, err)
	}
	onlyKeys, both := newHook(t, s, "api", ledger.EventKey), newHook(t, s, "web", ledger.EventKey, ledger.EventPolicy)
	defaults := newHook(t, s, "api", ledger.DefaultEventTypes()...)
	inactive, deleted := newHook(t, s, "api", ledger.EventKey), newHook(t, s, "web", ledger.EventKey)
	_, err := s.ChangeWebhook(ctx, "acme", "api", inactive.ID, outbound.WebhookChange{Active: new(false)})
	must.OK(t, err)
	must.OK(t, s.DeleteWebhook(ctx, "acme", "web", deleted.ID))
	foreign, err := s.CreateWebhook(ctx, "other", "web",
		outbound.NewWebhook{URL: "https://ci.example.com", Events: ledger.EventTypes()}, "whsec_x")
	must.OK(t, err)
	forgetEvents(t, s)

	must.OK(t, appendEvents(ctx, s, 1, nil))
	id, err := s.LogKey(ctx, "acme", ledger.KeyEvent{Action: ledger.KeyAdded, Purpose: ledger.KeyOfReceipts, Key: "k1"})
	must.OK(t, err)
	must.OK(t, appendEvents(ctx, s, 1, nil))
	if _, err := s.LogKey(ctx, "none", ledger.KeyEvent{}); err == nil {
		t.Error("a key of an org that does not exist was logged")
	}

	for name, test := range map[string]struct {
		hook outbound.Webhook
		want []string
	}{
		"keys": {onlyKeys, []string{"key:" + id}}, "of another repo": {both, []string{"key:" + id}},
		"inactive": {inactive, nil}, "deleted": {deleted, nil}, "of another org": {foreign, nil},
	} {
		if got := queuedFor(t, s, test.hook); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	if got := queuedFor(t, s, defaults); len(got) != 2 || !strings.HasPrefix(got[0]+got[1], "policy:") {
		t.Errorf("the default types: %q", got)
	}

	for name, test := range map[string]struct {
		filter events.EventFilter
		want   []string
	}{
		"all":            {events.EventFilter{}, []string{"policy", "key", "policy"}},
		"default":        {events.EventFilter{Types: ledger.DefaultEventTypes()}, []string{"policy", "policy"}},
		"keys":           {events.EventFilter{Types: []ledger.EventType{"key"}}, []string{"key"}},
		"with others":    {events.EventFilter{Types: []ledger.EventType{"key", "state", "violation"}}, []string{"key"}},
		"newest":         {events.EventFilter{Types: []ledger.EventType{"key"}, Descending: true}, []string{"key"}},
		"all of a repo":  {events.EventFilter{Repo: "api"}, []string{"policy", "policy"}},
		"keys of a repo": {events.EventFilter{Repo: "api", Types: []ledger.EventType{"key"}}, nil},
		"both of a repo": {events.EventFilter{Repo: "api", Types: []ledger.EventType{"key", "policy"}},
			[]string{"policy", "policy"}},
		"after the event": {events.EventFilter{After: id, Types: []ledger.EventType{"key", "policy"}}, []string{"policy"}},
		"before it":       {events.EventFilter{After: id, Descending: true, Types: []ledger.EventType{"key"}}, nil},
	} {
		test.filter.Limit = 10
		page, err := s.Events(ctx, "acme", test.filter)
		if got := listedTypes(t, page, err); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}

	tail, err := s.Tail(ctx, "acme")
	must.OK(t, err)
	events, err := tail.Read(ctx, 0, 10)
	must.OK(t, err)
	if len(events) != 3 || events[1].ID != id || events[1].Repo != "" || events[2].Repo != "api" {
		t.Errorf("the tail has %+v", events)
	}
	q, err := search.Parse(id)
	must.OK(t, err)
	found, err := s.Search(ctx, "acme", SearchQuery{Query: q, Limit: 5})
	must.OK(t, err)
	if len(found.Data) != 1 || found.Data[0].Title != "key" || found.Data[0].Repo != "" {
		t.Errorf("found %+v", found.Data)
	}
	wantLog(t, s, path)
}

// A replay queues the events of the org for webhooks that ask for them.
func TestReplayOfOrgEvents(t *testing.T) {
	ctx := t.Context()
	s, _ := newLogStore(t)
	_, err := s.LogKey(ctx, "acme", ledger.KeyEvent{Key: "k1"})
	must.OK(t, err)
	must.OK(t, appendEvents(ctx, s, 2, nil))
	for want, kinds := range map[int64][]ledger.EventType{1: {"key"}, 2: {"policy"}, 3: {"key", "policy"}, 0: {"state"}} {
		w := newHook(t, s, "api", kinds...)
		if queued, err := s.ReplayWebhook(ctx, "acme", "api", w.ID, 1); queued != want || err != nil {
			t.Errorf("%q: queued %d, %v, want %d", kinds, queued, err, want)
		}
	}
}

// The webhooks that receive events of the org are limited.
func TestWebhooksOfOrgEventsAreLimited(t *testing.T) {
	ctx := t.Context()
	s, _ := newLogStore(t)
	var first outbound.Webhook
	for i := range events.MaxOrgHooks {
		repo := fmt.Sprint("r", i/50)
		if i%50 == 0 {
			_, err := s.CreateRepo(ctx, "acme", ledger.NewRepo{Name: repo}, "admin")
			must.OK(t, err)
		}
		w := newHook(t, s, repo, ledger.EventKey)
		if i == 0 {
			first = w
		}
	}

	limited := func(name string, err error) {
		t.Helper()
		if fault, ok := errors.AsType[*ledger.Error](err); !ok || fault.Code != ledger.CodeLimitReached {
			t.Errorf("%s: %v", name, err)
		}
	}
	n := outbound.NewWebhook{URL: "https://ci.example.com", Events: []ledger.EventType{"state", "key"}}
	_, err := s.CreateWebhook(ctx, "acme", "api", n, "whsec_x")
	limited("one more", err)
	hooks, err := s.Webhooks(ctx, "acme", "api", txn.Query{Limit: 10})
	must.OK(t, err)
	if len(hooks.Data) != 0 {
		t.Errorf("the refused webhook is there: %+v", hooks.Data)
	}

	other := newHook(t, s, "api", ledger.EventState)
	_, err = s.ChangeWebhook(ctx, "acme", "api", other.ID, outbound.WebhookChange{Events: &n.Events})
	limited("another one that asks for keys", err)
	n.Active = new(false)
	asleep, err := s.CreateWebhook(ctx, "acme", "api", n, "whsec_x")
	must.OK(t, err)
	_, err = s.ChangeWebhook(ctx, "acme", "api", asleep.ID, outbound.WebhookChange{Active: new(true)})
	limited("an inactive one that is activated", err)

	must.OK(t, s.DeleteWebhook(ctx, "acme", "r0", first.ID))
	_, err = s.ChangeWebhook(ctx, "acme", "api", asleep.ID, outbound.WebhookChange{Active: new(true)})
	must.OK(t, err)
	_, err = s.LogKey(ctx, "acme", ledger.KeyEvent{Key: "k1"})
	must.OK(t, err)
	if got := queuedFor(t, s, asleep); len(got) != 1 {
		t.Errorf("queued %q", got)
	}
}
