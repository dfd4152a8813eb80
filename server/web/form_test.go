package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
)

// Invalid forms and forms that are too long have different errors. The limit is
// lower for open routes.
func TestInvalidForms(t *testing.T) {
	e := newEnv(t)
	for _, test := range []struct {
		path, body string
		status     int
	}{
		{"/login", "name=%zz", 400},
		{"/login?x=%zz", "token=x", 400},
		{"/login", "token=" + strings.Repeat("x", 60<<10), 401},
		{"/login", "token=" + strings.Repeat("x", 64<<10), 413},
		{"/setup", "key=" + strings.Repeat("x", 64<<10), 413},
		{tokensPath + "/new", "name=%zz", 400},
		{policyPath + "/edit", "document=" + url.QueryEscape("{}") + strings.Repeat("x", 4<<20), 413},
	} {
		w := e.signIn(e.admin)
		r, err := http.NewRequestWithContext(t.Context(), "POST", e.url+test.path, strings.NewReader(test.body))
		must.OK(t, err)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", e.url)

		resp, err := w.client.Do(r)
		must.OK(t, err)
		resp.Body.Close()
		if resp.StatusCode != test.status {
			t.Errorf("%s of %d bytes: %d, want %d", test.path, len(test.body), resp.StatusCode, test.status)
		}
	}
}
