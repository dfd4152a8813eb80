package boundedhttp_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/ledgerd/ledgerd/internal/boundedhttp"
	"github.com/ledgerd/ledgerd/internal/must"
)

const maxAnswer = 1000 // bytes

// newServer returns a server that answers GET /N with N bytes.
func newServer(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	for path, size := range map[string]int{"/999": 999, "/1000": 1000, "/1001": 1001, "/100000": 100_000} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat("x", size)) // the client may not read all of it
		})
	}
	mux.HandleFunc("/header", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("User-Agent")+" wants "+r.Header.Get("Accept"))
	})
	mux.Handle("/redirect", http.RedirectHandler("/999", http.StatusFound))
	server := httptest.NewTLSServer(mux)
	t.Cleanup(server.Close)
	return server
}

// get returns the status and the body of an answer.
func get(t *testing.T, c *http.Client, url string) (int, string, error) {
	t.Helper()
	response, err := c.Get(url)
	must.OK(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

func TestSizes(t *testing.T) {
	server := newServer(t)
	roots := server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	c := boundedhttp.NewClient(boundedhttp.Config{MaxAnswer: maxAnswer, RootCAs: roots})
	for path, want := range map[string]int{"/999": 999, "/1000": 1000, "/1001": -1, "/100000": -1} {
		_, body, err := get(t, c, server.URL+path)
		large, isLarge := errors.AsType[boundedhttp.TooLargeError](err)
		switch {
		case want >= 0 && (err != nil || len(body) != want):
			t.Errorf("%s: got %d bytes, %v", path, len(body), err)
		case want < 0 && (!isLarge || large != maxAnswer || len(body) != maxAnswer):
			t.Errorf("%s: got %d bytes, %v, want an error", path, len(body), err)
		}
	}
}

func TestRequests(t *testing.T) {
	server := newServer(t)
	roots := server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	for _, test := range []struct {
		config boundedhttp.Config
		want   string
		dials  int64 // for three requests
	}{
		{boundedhttp.Config{}, "ledgerd wants application/json", 3},
		{boundedhttp.Config{UserAgent: "other/1", KeepAlive: true}, "other/1 wants application/json", 1},
	} {
		var dials atomic.Int64
		test.config.MaxAnswer, test.config.RootCAs = maxAnswer, roots
		test.config.Control = func(string, string, syscall.RawConn) error {
			dials.Add(1)
			return nil
		}

		c := boundedhttp.NewClient(test.config)
		for range 2 {
			if _, body, err := get(t, c, server.URL+"/header"); err != nil || body != test.want {
				t.Errorf("got %q, %v, want %q", body, err, test.want)
			}
		}
		if status, _, err := get(t, c, server.URL+"/redirect"); err != nil || status != http.StatusFound {
			t.Errorf("a redirect: %d, %v", status, err)
		}
		if dials.Load() != test.dials {
			t.Errorf("%s: %d connections, want %d", test.want, dials.Load(), test.dials)
		}
	}
}
