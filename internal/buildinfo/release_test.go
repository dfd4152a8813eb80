package buildinfo

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestLatest(t *testing.T) {
	cases := []struct {
		name, body string
		status     int
		want       string // the version, or a part of the error
	}{
		{"a release", `{"tag_name": "v1.2.3", "html_url": "https://example.com/v1.2.3", "draft": false}`, 200, "v1.2.3"},
		{"no release yet", `{"message": "Not Found"}`, 404, "404 Not Found"},
		{"too many requests", `{"message": "rate limit"}`, 403, "403 Forbidden"},
		{"another document", `{"name": "x"}`, 200, "no tag_name"},
		{"a tag that is no version", `{"tag_name": "latest"}`, 200, "no tag_name"},
		{"a page", `<html>`, 200, "does not describe a release"},
		{"nothing", ``, 200, "does not describe a release"},
		{"too much", `{"body": "` + strings.Repeat("x", maxRelease) + `", "tag_name": "v1.2.3"}`, 200, "too large"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				w.Write([]byte(c.body))
			}))
			defer server.Close()

			r, err := Latest(t.Context(), server.URL)
			if err == nil && r.Version != c.want {
				t.Errorf("version %s, want %s", r.Version, c.want)
			}
			if err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestIsNewerThan(t *testing.T) {
	cases := []struct {
		latest, version string
		want            bool
	}{
		{"v1.2.3", "v1.2.2", true},
		{"v1.10.0", "v1.9.0", true},
		{"v1.2.3", "v1.2.3-rc.1", true},
		{"v1.2.3", "v1.2.3", false},
		{"v1.2.3", "v1.3.0", false},
		{"v1.2.3", "(devel)", false},
		{"v1.2.3", "v1.2.3-0.20261122150405-0123456789ab", false},
		{"v1.2.3", "v1.2.2+dirty", false},
	}
	for _, c := range cases {
		if got := (Release{Version: c.latest}).IsNewerThan(c.version); got != c.want {
			t.Errorf("%s is newer than %s: %v, want %v", c.latest, c.version, got, c.want)
		}
	}
}
