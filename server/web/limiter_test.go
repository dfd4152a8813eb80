package web_test

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
)

// Pages wait until they can be rendered, up to a maximum number of waiting requests.
// Cheap requests do not wait.
func TestLimiter(t *testing.T) {
	e := newEnv(t)
	w := e.signIn(e.reader)
	asset := attribute(w.get("/orgs/acme").want(200).elements("script")[0], "src")

	end := e.site.OccupyLimiter(true)
	p := w.get("/orgs/acme").want(503).has("Server busy")
	if p.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	w.get(asset).want(200)
	ctx, leave := context.WithCancel(t.Context())
	stream := must.Get(http.NewRequestWithContext(ctx, "GET", e.url+"/orgs/acme/events", nil))(t)
	stream.Header.Set("Accept", "text/event-stream")
	resp, err := w.client.Do(stream)
	must.OK(t, err)
	if resp.StatusCode != 200 {
		t.Errorf("the stream: %s", resp.Status)
	}
	leave()
	resp.Body.Close()
	end()

	end = e.site.OccupyLimiter(false)
	waited := make(chan page)
	go func() { waited <- w.get("/orgs/acme") }()
	select {
	case p := <-waited:
		t.Errorf("%s did not wait: %d", p.what, p.status)
	case <-time.After(50 * time.Millisecond):
	}
	end()
	(<-waited).want(200)
}

// A client that sends a form slowly does not delay others.
func TestSlowFormsDoNotOccupyTheLimiter(t *testing.T) {
	e := newEnv(t)
	w := e.signIn(e.reader)
	body := make(chan struct{})
	defer close(body)
	for range 100 {
		slow := must.Get(http.NewRequestWithContext(t.Context(), "POST", e.url+"/login", slowBody(body)))(t)
		slow.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		slow.Header.Set("Origin", e.url)
		go func() {
			if resp, err := http.DefaultClient.Do(slow); err == nil {
				resp.Body.Close()
			}
		}()
	}
	for range 5 {
		time.Sleep(20 * time.Millisecond)
		w.get("/orgs/acme").want(200).has("Repos")
	}
}

// A slowBody ends when its channel is closed.
type slowBody chan struct{}

func (s slowBody) Read([]byte) (int, error) {
	<-s
	return 0, io.EOF
}
