package server

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
)

// The log's name is that of the configured URL, whatever host a client names.
func TestHostHeaderDoesNotNameTheLog(t *testing.T) {
	b := newLogBackend(t)
	b.grow(1)
	for range 2 {
		for _, host := range []string{"evil.example", "ledger.example.com.evil.example"} {
			req := must.Get(http.NewRequestWithContext(t.Context(), "GET", b.url+logPath+"/checkpoint", nil))(t)
			req.Host = host
			req.Header.Set("Authorization", "Bearer "+b.reader)
			req.Header.Set("X-Forwarded-Host", host)
			resp, err := b.client.Do(req)
			must.OK(t, err)
			body := must.Get(io.ReadAll(resp.Body))(t)
			must.OK(t, resp.Body.Close())

			named := strings.HasPrefix(string(body), logOrigin+"\n")
			if resp.StatusCode == 200 && !named || strings.Contains(string(body), "evil") {
				t.Errorf("%s: %d: %s", host, resp.StatusCode, body)
			}
		}
		b.sign()
	}
	if l := b.status(); l.Origin != logOrigin {
		t.Errorf("got %+v", l)
	}
}

// A server whose log is not signed is ready, and says so. Orgs are neither named nor counted:
// anyone may ask.
func TestReadinessOfUnsignedLogs(t *testing.T) {
	b := newLogBackend(t)
	ready := func() readiness {
		return decode[readiness](b.send(request{method: "GET", path: "/readyz"}).want(200))
	}
	b.growTo(10)
	if r := ready(); r.Log != nil || b.status().Problem != "" || b.status().SignedAt == 0 {
		t.Errorf("got %+v, %+v", r.Log, b.status())
	}

	_, err := b.store.CreateOrg(t.Context(), "globex")
	must.OK(t, err)
	b.sign()
	key, other := filepath.Join(b.keys, "acme.1.key"), filepath.Join(b.keys, "globex.1.key")
	must.OK(t, errors.Join(os.Rename(key, key+".moved"), os.Rename(other, other+".moved")))
	_, err = b.store.CreateRepo(t.Context(), "globex", ledger.NewRepo{Name: "api"}, "host")
	must.OK(t, err)
	b.grow(2)
	b.sign()
	r := b.send(request{method: "GET", path: "/readyz"}).want(200)
	if got := ready(); got.Status != "ok" || got.Log == nil || got.Log.Unsigned != 1 || got.Log.Detail == "" ||
		strings.Contains(string(r.body), "acme") {
		t.Errorf("got %s", r.body)
	}
	if l := b.status(); !strings.Contains(l.Problem, "its key is missing") || l.Size != 10 || l.Events != 12 {
		t.Errorf("got %+v", l)
	}
	b.get(logPath + "/checkpoint").want(200)
	b.get(logPath + "/tile/0/000.p/10").want(200)

	must.OK(t, os.Rename(key+".moved", key))
	b.sign()
	if r := ready(); r.Log == nil || r.Log.Unsigned != 1 {
		t.Errorf("got %+v, want 1 as for two logs", r.Log)
	}
	must.OK(t, os.Rename(other+".moved", other))
	b.sign()
	if r := ready(); r.Log != nil || b.status().Problem != "" || b.status().Size != 12 {
		t.Errorf("got %+v, %+v", r.Log, b.status())
	}
}
