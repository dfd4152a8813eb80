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
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/webhook"
)

// A faultyReceiver fails one in five requests: it responds with 500, too late or not at
// all.
type faultyReceiver struct {
	repo   string
	types  []ledger.EventType
	id     string // of the webhook
	secret string
	*httptest.Server

	mu       sync.Mutex
	problems []string
	bodies   map[string][]byte // by event id
	requests map[string]int    // by event id
	accepted map[string]int    // requests that got a 204 in time, by event id
	failed   map[string]int    // failed requests, by kind of failure
}

// slowResponse is longer than the webhook timeout of the servers under test.
const slowResponse = 1200 * time.Millisecond

func newFaulty(t *testing.T, c *client.Client, repo string, types ...ledger.EventType) *faultyReceiver {
	f := &faultyReceiver{repo: repo, types: types, bodies: map[string][]byte{}, requests: map[string]int{},
		accepted: map[string]int{}, failed: map[string]int{}}
	f.Server = httptest.NewServer(http.HandlerFunc(f.receive))
	t.Cleanup(f.Close)
	w, err := c.CreateWebhook(t.Context(), "acme", repo, outbound.NewWebhook{URL: f.URL, Events: types})
	must.OK(t, err)
	f.id, f.secret = w.ID, w.Secret
	return f
}

func (f *faultyReceiver) receive(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the server was killed
	}

	event := f.examine(r.Header, body)
	switch how := rand.IntN(200); {
	case how < 3:
		f.fail("too late")
		time.Sleep(slowResponse)
		w.WriteHeader(http.StatusNoContent)
	case how < 20:
		f.fail("hung up")
		panic(http.ErrAbortHandler)
	case how < 40:
		f.fail("500")
		w.WriteHeader(http.StatusInternalServerError)
	default:
		f.mu.Lock()
		f.accepted[event]++
		f.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	}
}

// examine checks a delivery, as far as this does not depend on other deliveries, and
// returns the id of its event.
func (f *faultyReceiver) examine(header http.Header, body []byte) string {
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
		note("a body is not an event: %v", err)
	}
	if err := webhook.Verify(f.secret, header, body, time.Now()); err != nil {
		note("%s: %v", event.ID, err)
	}
	if event.Repo != f.repo || !slices.Contains(f.types, event.Type) ||
		header.Get("X-ledger-Event") != string(event.Type) {
		note("unexpected event %s: type %s of repo %s", event.ID, event.Type, event.Repo)
	}
	if before, ok := f.bodies[event.ID]; ok && !bytes.Equal(before, body) {
		note("%s arrived with two different bodies", event.ID)
	}

	f.bodies[event.ID] = body
	f.requests[event.ID]++
	return event.ID
}

func (f *faultyReceiver) fail(how string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed[how]++
}

// missing returns how many of the events were never accepted.
func (f *faultyReceiver) missing(events map[string][]byte) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id := range events {
		if f.accepted[id] == 0 {
			n++
		}
	}
	return n
}

// wants returns the bodies of the events that the webhook must receive, by id.
func (f *faultyReceiver) wants(t *testing.T, s *store.Store) map[string][]byte {
	t.Helper()
	wanted := make(map[string][]byte)
	filter := store.EventFilter{Query: store.Query{Limit: 500}, Repo: f.repo, Types: f.types}
	for {
		page, err := s.Events(t.Context(), "acme", filter)
		must.OK(t, err)
		for _, body := range page.Data {
			var event struct {
				ID string `json:"id"`
			}
			must.OK(t, json.Unmarshal(body, &event))
			wanted[event.ID] = body
		}
		if filter.Cursor = page.NextCursor; filter.Cursor == "" {
			return wanted
		}
	}
}

// compare compares the received events with those of the ledger. It logs a summary, and
// returns how many events were accepted more than once.
func (f *faultyReceiver) compare(t *testing.T, wanted map[string][]byte) (twice int) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, problem := range f.problems {
		t.Errorf("webhook of %s: %s", f.repo, problem)
	}
	repeats := 0
	for id, n := range f.requests {
		repeats += n - 1
		twice += max(0, f.accepted[id]-1)
		if body, ok := wanted[id]; !ok {
			t.Errorf("%s arrived but is not in the ledger", id)
		} else if !bytes.Equal(body, f.bodies[id]) {
			t.Errorf("%s arrived as\n%s, the ledger has\n%s", id, f.bodies[id], body)
		}
	}
	t.Logf("%s %v: %d events; failed %v; %d requests were repeats, %d of them of accepted events",
		f.repo, f.types, len(wanted), f.failed, repeats, twice)
	return twice
}

// TestKillLosesNoWebhookDelivery checks that faulty receivers get every event, although
// the server is killed repeatedly.
func TestKillLosesNoWebhookDelivery(t *testing.T) {
	testenv.From(t, testenv.Push, "takes many seconds")
	t.Parallel()
	rounds, writers := testenv.Pick(5, 5, 30), 4
	v := newVictim(t)
	v.ledgerd("repo", "create", "acme/web")
	v.flags = []string{
		"--webhooks-allowed-networks", "127.0.0.0/8,::1/128", "--webhooks-timeout", "1s",
		// Enough retries that no delivery fails, although one attempt in five does.
		"--webhooks-schedule", strings.Repeat("1s,", 30) + "1s",
	}
	key := v.addSigner("cn=ci,ou=build,o=acme")
	token := v.ledgerd("token", "create", "--org", "acme", "--name", "admin", "--scope", "admin")
	v.start()
	address := strings.TrimPrefix(v.url, "http://")
	c := must.Get(client.New(v.url, client.Options{Token: token}))(t)
	receivers := []*faultyReceiver{
		newFaulty(t, c, "api", ledger.EventAttestation, ledger.EventState, ledger.EventPolicy),
		newFaulty(t, c, "api", ledger.EventState),
		newFaulty(t, c, "web", ledger.EventAttestation),
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var attested atomic.Int64
	var writing sync.WaitGroup
	for writer := range writers {
		writing.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				repo := []string{"api", "web"}[writer%2]
				if _, err := v.attestTo(repo, token, key, fmt.Sprint(writer, n)); err == nil { // else the server is dead
					attested.Add(1)
				}
				time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
			}
		})
	}
	for round := range rounds {
		enough := int64((round + 1) * 20)
		must.Wait(t, "the server to be under load", func() bool { return attested.Load() >= enough })
		time.Sleep(time.Duration(rand.IntN(400)) * time.Millisecond)
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
	v.kill() // deliveries that are still running must not affect the comparison
	for _, f := range receivers {
		twice += f.compare(t, f.wants(t, s))
	}
	v.checkIntegrity()
	t.Logf("%d kills, %d deliveries, %d accepted more than once", rounds, events, twice)
}

// waitFor waits until the webhook has accepted all events and no delivery is pending.
func (f *faultyReceiver) waitFor(t *testing.T, c *client.Client, wanted map[string][]byte) {
	t.Helper()
	pending := client.DeliveryFilter{Status: outbound.DeliveryPending}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		waiting := must.Get(client.Collect(c.Deliveries(t.Context(), "acme", f.repo, f.id, pending), 0))(t)
		if len(waiting) == 0 && f.missing(wanted) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("webhook of %s %v: after a minute %d of %d events are missing and %d deliveries are pending",
				f.repo, f.types, f.missing(wanted), len(wanted), len(waiting))
		}
	}
}
