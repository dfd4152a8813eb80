package e2e_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
)

// lists reads pages of lists, with and without filters.
func (l *load) lists(ctx context.Context) error {
	r := l.anyRepo()
	org, few := r.tenant.name, client.Query{Limit: 50}
	_, err := r.readsOf.CommitsPage(ctx, org, r.name, client.CommitFilter{}, few)
	if err != nil {
		return fmt.Errorf("commits: %w", err)
	}
	hour := ledger.TimeOf(l.now().Add(-time.Hour))
	filter := client.AttestationFilter{Predicate: "test:*", Status: ledger.Fail, Since: hour}
	if _, err = r.readsOf.AttestationsPage(ctx, org, r.name, filter, few); err != nil {
		return fmt.Errorf("attestations: %w", err)
	}
	if _, err = r.readsOf.OverlapsPage(ctx, org, r.name, client.OverlapFilter{}, few); err != nil {
		return fmt.Errorf("radar: %w", err)
	}
	_, err = r.readsOf.EventsPage(ctx, org, client.EventFilter{Repo: r.name, NewestFirst: true}, few)
	return err
}

// token creates a token that expires within the hour, uses it, and revokes every other
// one.
func (l *load) token(ctx context.Context) error {
	n, serial := l.anyRepo().tenant, l.serial.Add(1)
	token, err := n.adminOf.CreateToken(ctx, n.name, ledger.NewToken{
		Name: fmt.Sprint("job ", serial), Scope: ledger.Read, ExpiresAt: ledger.TimeOf(l.now().Add(time.Hour))})
	if err != nil {
		return err
	}
	c := l.client(token.Secret)
	if _, err := c.OwnToken(ctx); err != nil || serial%2 == 0 {
		return err
	}
	return n.adminOf.RevokeToken(ctx, n.name, token.ID)
}

// policy simulates a policy and applies it.
func (l *load) policy(ctx context.Context) error {
	r, threshold := l.anyRepo(), 1+mathrand.IntN(2)
	document, err := contract(threshold)
	if err != nil {
		return err
	}
	if _, err := r.adminOf.Simulate(ctx, r.tenant.name, r.name, document); err != nil {
		return fmt.Errorf("simulate: %w", err)
	}
	return l.setPolicy(ctx, r, threshold)
}

// identity adds a key, signs with it, and revokes it.
func (l *load) identity(ctx context.Context) error {
	r := l.anyRepo()
	key, id, err := l.addIdentity(ctx, r.tenant, fmt.Sprint("robot", l.serial.Add(1)))
	if err != nil {
		return err
	}
	if sha := r.aCommit(); sha != "" {
		if err := l.attest(ctx, r, sha, "scan:deps", ledger.Pass, key); err != nil {
			return err
		}
	}
	return r.adminOf.RevokeIdentity(ctx, r.tenant.name, id)
}

// webhook creates a webhook, uses all its functions, and deletes it after half an hour.
func (l *load) webhook(ctx context.Context) error {
	r := l.anyRepo()
	org, api := r.tenant.name, r.adminOf
	w, err := api.CreateWebhook(ctx, org, r.name, outbound.NewWebhook{URL: l.receiver.url + "/moody"})
	if err != nil {
		return err
	}
	ping, err := api.PingWebhook(ctx, org, r.name, w.ID)
	if err != nil {
		return err
	}
	if _, err := api.RotateWebhook(ctx, org, r.name, w.ID, ledger.Duration(time.Minute)); err != nil {
		return err
	}
	if _, err := api.ReplayWebhook(ctx, org, r.name, w.ID, ledger.TimeOf(l.now().Add(-5*time.Minute))); err != nil {
		return err
	}

	l.pause(ctx, 5*time.Minute)
	if _, err := api.Redeliver(ctx, org, r.name, w.ID, ping.ID); err != nil && client.CodeOf(err) == "" {
		return err
	}
	if _, err := api.DeliveriesPage(ctx, org, r.name, w.ID, client.DeliveryFilter{}, client.Query{}); err != nil {
		return err
	}
	return api.DeleteWebhook(ctx, org, r.name, w.ID)
}

// refused sends a request that the server has to refuse.
func (l *load) refused(ctx context.Context) error {
	r := l.anyRepo()
	path := fmt.Sprintf("/v1/orgs/%s/repos/%s/attestations", r.tenant.name, r.name)
	_, stranger, err := ed25519.GenerateKey(nil)
	if err != nil {
		return err
	}

	var want []int
	switch l.serial.Add(1) % 6 {
	case 0: // signed by an unknown key
		err, want = l.attest(ctx, r, fakeID("x"), "test:go", ledger.Pass, stranger), []int{403, 422}
	case 1: // an unknown token, of which there are many
		err, want = l.send(ctx, http.MethodPost, path, "ldg_"+rand.Text(), "{}"), []int{401}
	case 2:
		err, want = l.send(ctx, http.MethodPost, path, r.readSecret, "{}"), []int{403}
	case 3:
		err, want = l.send(ctx, http.MethodPost, path, r.adminSecret, `{"payload`), []int{400, 422}
	case 4:
		err, want = l.send(ctx, http.MethodPost, path, r.adminSecret, strings.Repeat(" ", 5<<20)), []int{413}
	case 5:
		err, want = l.send(ctx, http.MethodGet, "/v1/orgs/"+r.tenant.name+"/repos/"+rand.Text(), r.adminSecret, ""),
			[]int{404, 400}
	}
	if e, ok := errors.AsType[*client.Error](err); ok {
		for _, status := range want {
			if e.Status == status {
				return nil
			}
		}
	}
	return cmp.Or(err, fmt.Errorf("the request was not refused"))
}

// send sends a request and returns an error response as a client.Error.
func (l *load) send(ctx context.Context, method, path, token, body string) error {
	request, err := http.NewRequestWithContext(ctx, method, l.o.url+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	_, err = l.respond(request)
	return err
}

// respond sends a request and returns the body of the response.
func (l *load) respond(request *http.Request) ([]byte, error) {
	response, err := l.transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return body, cmp.Or(err, responseError(response))
}

// responseError returns the error of an error response, or nil.
func responseError(response *http.Response) error {
	if response.StatusCode < 400 {
		return nil
	}
	return &client.Error{Status: response.StatusCode, Problem: ledger.Problem{Detail: response.Status}}
}

// A moodyReceiver is a receiver of webhooks. /good accepts every delivery, /broken none,
// and /moody nearly all, except during an outage.
type moodyReceiver struct {
	url      string
	outage   atomic.Bool
	received atomic.Int64
}

func newMoodyReceiver(t *testing.T) *moodyReceiver {
	m := &moodyReceiver{}
	m.url = serve(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer
		body.ReadFrom(r.Body)
		m.received.Add(1)
		if r.URL.Path == "/good" {
			return
		}
		switch n := mathrand.IntN(200); {
		case r.URL.Path == "/broken" || m.outage.Load() || n < 6:
			http.Error(w, "out of order", http.StatusInternalServerError)
		case n == 6: // longer than the server's timeout
			select {
			case <-r.Context().Done():
			case <-time.After(time.Second):
			}
		}
	})
	return m
}
