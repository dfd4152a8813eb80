package cmd_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/webhook"
)

// A faulty is a webhook's receiver that fails one in five: it answers 500 or
// nothing, or too late.
type faulty struct {
	repo   string
	types  []ledger.EventType
	id     string // the webhook's
	secret string
	*httptest.Server

	mu       sync.Mutex
	problems []string
	bodies   map[string][]byte // of events, by id
	arrived  map[string]int    // requests, by event
	taken    map[string]int    // those that were answered 204 in time
	failed   map[string]int    // those that were not, by how
}

// slowAnswer is beyond the deadline of the servers under test.
const slowAnswer = 1200 * time.Millisecond

func newFaulty(t *testing.T, c *client.Client, repo string, types ...ledger.EventType) *faulty {
	f := &faulty{repo: repo, types: types, bodies: map[string][]byte{}, arrived: map[string]int{}, taken: map[string]int{},
		failed: map[string]int{}}
	f.Server = httptest.NewServer(http.HandlerFunc(f.receive))
	t.Cleanup(f.Close)
	w, err := c.CreateWebhook(t.Context(), "acme", repo, ledger.NewWebhook{URL: f.URL, Events: types})
	check(t, err)
	f.id, f.secret = w.ID, w.Secret
	return f
}

func (f *faulty) receive(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // whoever sent it was killed
	}
	event := f.examine(r.Header, body)
	switch how := rand.IntN(200); {
	case how < 3:
		f.fail("too late")
		time.Sleep(slowAnswer)
		w.WriteHeader(http.StatusNoContent)
	case how < 20:
		f.fail("hung up")
		panic(http.ErrAbortHandler)
	case how < 40:
		f.fail("500")
		w.WriteHeader(http.StatusInternalServerError)
	default:
		f.mu.Lock()
		f.taken[event]++
		f.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	}
}

// examine checks a delivery against all that does not depend on others, and
// returns its event's id.
func (f *faulty) examine(header http.Header, body []byte) string {
	var event struct {
		ID   string           `json:"id"`
		Type ledger.EventType `json:"type"`
		Repo string           `json:"repo"`
	}
	err := json.Unmarshal(body, &event)
	f.mu.Lock()
	defer f.mu.Unlock()
	note := func(format string, args ...any) { f.problems = append(f.problems, fmt.Sprintf(format, args...)) }
	if err != nil {
		note("a body is no event: %v", err)
	}
	if err := webhook.Verify(f.secret, header, body, time.Now()); err != nil {
		note("%s: %v", event.ID, err)
	}
	if event.Repo != f.repo || !slices.Contains(f.types, event.Type) ||
		header.Get("X-ledger-Event") != string(event.Type) {
		note("%s is the %s event of %s", event.ID, event.Type, event.Repo)
	}
	if before, ok := f.bodies[event.ID]; ok && !bytes.Equal(before, body) {
		note("%s came with two bodies", event.ID)
	}
	f.bodies[event.ID] = body
	f.arrived[event.ID]++
	return event.ID
}

func (f *faulty) fail(how string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed[how]++
}

// missing counts the events that were never taken.
func (f *faulty) missing(events map[string][]byte) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id := range events {
		if f.taken[id] == 0 {
			n++
		}
	}
	return n
}

// wants returns the events that the webhook has to get.
func (f *faulty) wants(t *testing.T, s *store.Store) map[string][]byte {
	t.Helper()
	wanted := make(map[string][]byte)
	filter := store.EventFilter{Query: store.Query{Limit: 500}, Repo: f.repo, Types: f.types}
	for {
		page, err := s.Events(t.Context(), "acme", filter)
		check(t, err)
		for _, body := range page.Data {
			var event struct {
				ID string `json:"id"`
			}
			check(t, json.Unmarshal(body, &event))
			wanted[event.ID] = body
		}
		if filter.Cursor = page.NextCursor; filter.Cursor == "" {
			return wanted
		}
	}
}

// compare checks what came against the events that the ledger holds, and
// tells how it went.
func (f *faulty) compare(t *testing.T, wanted map[string][]byte) (twice int) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, problem := range f.problems {
		t.Errorf("webhook of %s: %s", f.repo, problem)
	}
	again := 0
	for id, n := range f.arrived {
		again += n - 1
		twice += max(0, f.taken[id]-1)
		if body, ok := wanted[id]; !ok {
			t.Errorf("%s arrived, which the ledger does not have", id)
		} else if !bytes.Equal(body, f.bodies[id]) {
			t.Errorf("%s arrived as\n%s, the ledger has\n%s", id, f.bodies[id], body)
		}
	}
	t.Logf("%s %v: %d events; refused %v; %d requests were repeats, %d of events that had been taken",
		f.repo, f.types, len(wanted), f.failed, again, twice)
	return twice
}

func TestKillsLoseNoWebhookDelivery(t *testing.T) {
	rounds, writers := 30, 4
	if testing.Short() {
		rounds = 5
	}
	v := newVictim(t)
	v.ledgerd("repo", "create", "acme/web")
	v.flags = []string{
		"--webhooks-allowed-networks", "127.0.0.0/8,::1/128", "--webhooks-timeout", "1s", "--webhooks-connect-timeout", "1s",
		// None is ever given up: one in five fails, thirty-one times in a row.
		"--webhooks-schedule", strings.Repeat("1s,", 30) + "1s",
	}
	key := v.addSigner("cn=ci,ou=build,o=acme")
	token := v.ledgerd("token", "create", "--org", "acme", "--name", "admin", "--scope", "admin")
	v.start()
	address := strings.TrimPrefix(v.url, "http://")
	c, err := client.New(v.url, client.Options{Token: token})
	check(t, err)
	receivers := []*faulty{
		newFaulty(t, c, "api", ledger.EventAttestation, ledger.EventState, ledger.EventPolicy),
		newFaulty(t, c, "api", ledger.EventState),
		newFaulty(t, c, "web", ledger.EventAttestation),
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var writing sync.WaitGroup
	for writer := range writers {
		writing.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				repo := []string{"api", "web"}[writer%2]
				v.attestTo(repo, token, key, fmt.Sprint(writer, n)) // or not: the server may be dead
				time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
			}
		})
	}
	for range rounds {
		time.Sleep(time.Duration(50+rand.IntN(500)) * time.Millisecond)
		v.kill()
		v.listen(address)
	}
	cancel()
	writing.Wait()

	s := v.open()
	defer s.Close()
	events, twice := 0, 0
	for _, f := range receivers {
		wanted := f.wants(t, s)
		f.waitFor(t, c, wanted)
		events += len(wanted)
	}
	v.kill() // whoever is sending still may not change what is compared
	for _, f := range receivers {
		twice += f.compare(t, f.wants(t, s))
	}
	v.checkIntegrity()
	t.Logf("%d kills, %d deliveries, %d of them made twice", rounds, events, twice)
	if events < rounds*20 {
		t.Errorf("only %d deliveries: the test did not load the server", events)
	}
}

// waitFor waits until the webhook has all events, and the ledger knows.
func (f *faulty) waitFor(t *testing.T, c *client.Client, wanted map[string][]byte) {
	t.Helper()
	pending := client.DeliveryFilter{Status: ledger.DeliveryPending}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		waiting, err := client.Collect(c.Deliveries(t.Context(), "acme", f.repo, f.id, pending), 0)
		check(t, err)
		if len(waiting) == 0 && f.missing(wanted) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("webhook of %s %v: after half a minute %d of %d events are missing, %d deliveries pending",
				f.repo, f.types, f.missing(wanted), len(wanted), len(waiting))
		}
	}
}
