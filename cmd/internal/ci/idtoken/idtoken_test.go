package idtoken

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
)

const audience = "https://ledger.example/v1/orgs/acme"

// env returns a function that reads variables from a map.
func env(variables map[string]string) func(string) string {
	return func(name string) string { return variables[name] }
}

// newForge starts a server that answers requests for tokens, and returns the environment of a job
// on GitHub that uses it.
func newForge(t *testing.T, answer http.HandlerFunc) map[string]string {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return map[string]string{"GITHUB_ACTIONS": "true", requestURL: server.URL + "/idtoken?api-version=2",
		requestToken: "request-secret"}
}

func TestTokenIsRequestedForTheAudience(t *testing.T) {
	number := 0
	variables := newForge(t, func(w http.ResponseWriter, r *http.Request) {
		number++
		if r.Method != "GET" || r.URL.Path != "/idtoken" || r.URL.RawQuery != "api-version=2&audience="+
			"https%3A%2F%2Fledger.example%2Fv1%2Forgs%2Facme" || r.Header.Get("Authorization") != "Bearer request-secret" {
			t.Errorf("requested %s %s with %q", r.Method, r.URL, r.Header)
		}
		fmt.Fprintf(w, `{"value":"a.b.%d","count":1}`, number)
	})

	s, err := Find(env(variables), audience)
	must.OK(t, err)
	for n := 1; n <= 2; n++ {
		got, err := s.Token(t.Context(), audience)
		if want := fmt.Sprintf("a.b.%d", n); got != want || err != nil {
			t.Errorf("token %d is %q, %v, want another one each time: %q", n, got, err, want)
		}
	}
}

func TestTokenOfTheVariableIsTakenAsItIs(t *testing.T) {
	variables := newForge(t, func(http.ResponseWriter, *http.Request) { t.Error("sent a request") })
	variables[Variable] = " a.b.c\n"
	s, err := Find(env(variables), audience)
	must.OK(t, err)
	for range 2 {
		if got, err := s.Token(t.Context(), audience); got != "a.b.c" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
	}

	full := strings.Repeat("a", 16<<10-4) + ".b.c"
	for token, ok := range map[string]bool{
		full: true, full + "c": false, "a.b": false, "a.b.c.d": false, "a b.c.d": false,
	} {
		variables[Variable] = token
		if _, err := Find(env(variables), audience); (err == nil) != ok {
			t.Errorf("%.20q of %d bytes: %v", token, len(token), err)
		}
	}
}

// Without a token, the error says what to add to the job.
func TestMissingTokenNamesTheFix(t *testing.T) {
	for name, tc := range map[string]struct {
		variables map[string]string
		want      string
	}{
		"GitHub":        {map[string]string{"GITHUB_ACTIONS": "true"}, "'id-token: write' to the permissions"},
		"without a URL": {map[string]string{"GITHUB_ACTIONS": "true", requestToken: "x"}, "'id-token: write'"},
		"without a secret": {map[string]string{"GITHUB_ACTIONS": "true", requestURL: "https://ci.example"},
			"'id-token: write'"},
		"Forgejo":        {map[string]string{"FORGEJO_ACTIONS": "true"}, "'enable-openid-connect: true'"},
		"GitLab":         {map[string]string{"GITLAB_CI": "true"}, "id_tokens: {LEDGERD_ID_TOKEN: {aud: " + audience + "}}"},
		"Gitea":          {map[string]string{"GITEA_ACTIONS": "true"}, "sign with a key"},
		"another system": {map[string]string{"BUILDKITE": "true"}, "set LEDGERD_ID_TOKEN to a token for the audience"},
		"no CI":          {nil, "not in a CI job"},
	} {
		if _, err := Find(env(tc.variables), audience); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
}

// The secret for requests is only sent over HTTPS, or to this machine.
func TestRequestsAreSafe(t *testing.T) {
	for address, ok := range map[string]bool{
		"https://ci.example/x": true, "http://127.0.0.1:1/x": true, "http://[::1]:1/x": true, "http://localhost:1/x": true,
		"http://ci.example/x": false, "http://127.0.0.1.example/x": false, "http://10.0.0.1/x": false, "file:///x": false,
		"ftp://127.0.0.1/x": false, "https://": false, ":": false, "x": false,
	} {
		_, err := Find(env(map[string]string{requestURL: address, requestToken: "x"}), audience)
		if (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestRequestsAreRepeatedOnlyIfThatHelps(t *testing.T) {
	for name, tc := range map[string]struct {
		answer       http.HandlerFunc
		want         string // in the error; empty: a token
		wantRequests int64
	}{
		"refused": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) },
			"GitHub Actions: it answered 403 Forbidden (add 'id-token: write'", 1},
		"failed": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, "it answered 500", 3},
		"redirected": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		}, "302", 1},
		"no JSON": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "text") }, "no token", 1},
		"empty":   {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"value":""}`) }, "no token", 1},
		"endless": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"value":"a.b.c"}`, strings.Repeat(" ", maxResponse))
		}, "no token", 1},
		"no token": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"value":"text"}`) },
			"not a JSON Web Token", 1},
		"cut off": {func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }, "EOF", 3},
	} {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int64
			variables := newForge(t, func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				tc.answer(w, r)
			})
			s, err := Find(env(variables), audience)
			must.OK(t, err)

			s.pause = time.Millisecond
			_, err = s.Token(t.Context(), audience)
			n := requests.Load()
			if err == nil || !strings.Contains(err.Error(), tc.want) || n != tc.wantRequests {
				t.Errorf("after %d requests: %v, want %d and %s", n, err, tc.wantRequests, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "request-secret") {
				t.Errorf("the error has the secret: %v", err)
			}
		})
	}
}

func TestSecondAttemptSucceeds(t *testing.T) {
	requests := 0
	variables := newForge(t, func(w http.ResponseWriter, _ *http.Request) {
		if requests++; requests == 1 {
			w.WriteHeader(503)
			return
		}
		fmt.Fprint(w, `{"value":"a.b.c"}`)
	})
	s, err := Find(env(variables), audience)
	must.OK(t, err)
	s.pause = time.Millisecond
	if got, err := s.Token(t.Context(), audience); got != "a.b.c" || err != nil || requests != 2 {
		t.Errorf("got %q, %v after %d requests", got, err, requests)
	}
}
