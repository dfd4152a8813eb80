package web_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
)

// refreshing returns a browser whose requests are those of the script for a refresh.
func (e *env) refreshing(token string) *browser {
	e.t.Helper()
	w := e.signIn(token)
	w.header = map[string]string{"X-Ledger-Refresh": "1"}
	return w
}

// liveParts returns the HTML of the live parts of a page.
func (p page) liveParts() string {
	p.t.Helper()
	var parts strings.Builder
	for n := range p.tree().Descendants() {
		if n.Type == html.ElementNode && attribute(n, "data-live-part") != "" {
			must.OK(p.t, html.Render(&parts, n))
		}
	}
	return parts.String()
}

// TestRefresh compares the live parts of each live page with those of its refresh, which
// shows nothing of the session. A page that is not live ignores the header.
func TestRefresh(t *testing.T) {
	e := newEnv(t)
	example := e.examples()
	for scope, token := range map[ledger.Scope]string{ledger.Read: e.reader, ledger.Admin: e.admin} {
		w, r := e.signIn(token), e.refreshing(token)
		live := 0

		for _, rt := range routes() {
			path := example(rt.Pattern)
			if rt.Method != "GET" || wantStatus(rt, scope) != 200 || strings.HasSuffix(rt.Pattern, "/events") {
				continue
			}

			full, refresh := w.get(path).want(200), r.get(path).want(200)
			if !strings.Contains(full.body, "data-live=") {
				if strings.HasPrefix(full.header.Get("Content-Type"), "text/html") {
					refresh.has("Sign out")
				}
				continue
			}
			live++
			if full.liveParts() == "" || full.liveParts() != refresh.liveParts() {
				t.Errorf("%s as %s: the live parts differ", path, scope)
			}
			refresh.hasNot("Sign out", scope.String()+" of acme", "tok_")
		}
		if live != 12 {
			t.Errorf("%d live pages, want 12", live)
		}
	}
}

// TestRefreshesAreNotSharedAcrossPermissions has visitors with different permissions
// refresh the same page at the same time. Only admins see that a token expires soon.
func TestRefreshesAreNotSharedAcrossPermissions(t *testing.T) {
	e := newEnv(t)
	_, err := e.host.CreateToken(t.Context(), "acme", ledger.NewToken{Name: "expires-soon", Scope: ledger.Read,
		ExpiresAt: e.clock.time().Add(24 * time.Hour)})
	must.OK(t, err)
	_, err = e.host.CreateOrg(t.Context(), ledger.NewOrg{Name: "other"})
	must.OK(t, err)
	foreign := e.token("other", ledger.Admin).Secret
	revoked := e.token("acme", ledger.Admin)
	ended := e.refreshing(revoked.Secret)
	must.OK(t, e.host.RevokeToken(t.Context(), "acme", revoked.ID))

	var visitors sync.WaitGroup
	for range 10 {
		admin, reader, other := e.refreshing(e.admin), e.refreshing(e.reader), e.refreshing(foreign)
		visitors.Go(func() { admin.get("/orgs/acme").want(200).has("expires-soon") })
		visitors.Go(func() { reader.get("/orgs/acme").want(200).hasNot("expires-soon") })
		visitors.Go(func() { reader.get("/orgs/acme/repos/api").want(200).has("api · acme · ledgerd") })
		visitors.Go(func() { reader.get("/orgs/acme/activity?type=spam").want(422) })
		visitors.Go(func() { reader.get("/orgs/acme/activity?type=policy").want(200).has("Activity · acme · ledgerd") })
		visitors.Go(func() { other.get("/orgs/acme").want(403).hasNot("expires-soon") })
		visitors.Go(func() { ended.get("/orgs/acme").want(303) })
	}
	visitors.Wait()
	e.browser().get("/orgs/acme").redirectsTo("/login?next=%2Forgs%2Facme")
}

// TestFaultSessionEndsDuringRefresh revokes a token whose session renders a page for
// others, too: they still get the page.
func TestFaultSessionEndsDuringRefresh(t *testing.T) {
	e := newEnv(t)
	token := e.token("acme", ledger.Read)
	first, leader, follower := e.refreshing(e.reader), e.refreshing(token.Secret), e.refreshing(e.reader)
	free := e.site.OccupyLimiter(false)
	var visitors sync.WaitGroup
	refresh := func(w *browser, want int) {
		visitors.Go(func() { w.get("/orgs/acme").want(want) })
		time.Sleep(100 * time.Millisecond) // so that the requests arrive in this order
	}

	refresh(first, 200)    // waits for the limiter
	refresh(leader, 303)   // waits for its turn
	refresh(follower, 200) // waits for the same rendering
	must.OK(t, e.host.RevokeToken(t.Context(), "acme", token.ID))
	free()
	visitors.Wait()
}

// TestRefreshIsNotOlderThanTheRequest checks that a refresh shows everything that was
// recorded before it was asked for, while others refresh the page all the time. A
// registration has no event.
func TestRefreshIsNotOlderThanTheRequest(t *testing.T) {
	e := newEnv(t)
	ctx, stop := context.WithCancel(t.Context())
	var others sync.WaitGroup
	for range 4 {
		w := e.refreshing(e.reader)
		others.Go(func() {
			for ctx.Err() == nil {
				w.get("/orgs/acme/repos/api").want(200)
			}
		})
	}
	defer others.Wait()
	defer stop()

	w := e.refreshing(e.reader)
	for n := range 8 {
		subject := fmt.Sprintf("change number %d", n)
		e.push(commitID(n), ledger.Registration{Branch: "main", Message: subject})
		w.get("/orgs/acme/repos/api").want(200).has(subject)
	}
}

// TestFaultCrowdOfRefreshes has more visitors refresh a page than may wait for the
// limiter. All of them get it.
func TestFaultCrowdOfRefreshes(t *testing.T) {
	e := newEnv(t)
	w := e.refreshing(e.reader)
	free := e.site.OccupyLimiter(false)
	var visitors sync.WaitGroup
	for range 400 {
		visitors.Go(func() { w.get("/orgs/acme/repos/api").want(200) })
	}
	time.Sleep(500 * time.Millisecond) // for most of them to wait
	free()
	visitors.Wait()
}

// TestPagesFollowADigest checks that the stream of a page sends the latest of several
// events, and that the stream of a commit page sends only events about the commit.
func TestPagesFollowADigest(t *testing.T) {
	e := newEnv(t)
	ci := e.signer("cn=ci,ou=build,o=acme")
	e.push(commitID(1), ledger.Registration{Branch: "main", Message: "one"})
	w := e.signIn(e.reader)
	live := attribute(w.get("/orgs/acme/repos/api/commits/" + commitID(1)).want(200).elements("main")[0], "data-live")

	e.attest(ci, commitID(1), "test:go", ledger.Pass)
	for n := range 20 {
		e.attest(ci, commitID(2), fmt.Sprint("lint:", n), ledger.Pass)
	}
	for path, want := range map[string]string{
		live: commitID(1), "/orgs/acme/events?types=attestation": "lint:19",
	} {
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		r, err := http.NewRequestWithContext(ctx, "GET",
			e.url+path+"&last_event_id=earliest", nil)
		must.OK(t, err)
		resp, err := w.client.Do(r)
		must.OK(t, err)
		defer resp.Body.Close()
		if resp.StatusCode != 200 {
			t.Fatalf("%s: %s", path, resp.Status)
		}
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				if !strings.Contains(data, want) {
					t.Errorf("%s: the first message is %s, want %s", path, data, want)
				}
				break
			}
		}
	}
}

// TestFaultFloodOfEvents records many events: the stream of a page sends few messages, and
// the last one is about the last event.
func TestFaultFloodOfEvents(t *testing.T) {
	e := newEnv(t)
	ci := e.signer("cn=ci,ou=build,o=acme")
	w := e.signIn(e.reader)
	r, err := http.NewRequestWithContext(t.Context(), "GET", e.url+"/orgs/acme/events?types=attestation", nil)
	must.OK(t, err)
	resp, err := w.client.Do(r)
	must.OK(t, err)
	defer resp.Body.Close()

	start := time.Now()
	const events = 100
	for n := range events {
		e.attest(ci, commitID(1), fmt.Sprint("lint:", n), ledger.Pass)
		time.Sleep(5 * time.Millisecond) // so that the feed reads several times
	}
	messages := 0
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			messages++
			if strings.Contains(data, fmt.Sprintf(`"lint:%d"`, events-1)) {
				break
			}
		}
	}
	if most := 2 + int(time.Since(start)/(500*time.Millisecond)); messages > most || messages == 0 {
		t.Errorf("%d messages in %v, want 1 to %d", messages, time.Since(start), most)
	}
}
