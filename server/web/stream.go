package web

import (
	"net/http"

	"github.com/ledgerd/ledgerd/server/internal/wire"
	"github.com/ledgerd/ledgerd/server/web/page"
)

// followEvents responds with a digest of the API's live stream of the org: the script
// only needs to know that something has changed. The parameter commit limits it to events
// about a commit.
func (s *Site) followEvents(v *page.Visit) (*page.Response, error) {
	return &page.Response{Stream: func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		in := r.Clone(s.api.WithDigest(r.Context(), query.Get("commit")))
		query.Del("commit")
		in.URL.RawQuery = query.Encode()
		in.URL.Path = page.PathTo("v1", "orgs", v.Org, "events")
		in.URL.RawPath = ""
		in.Header.Set("Accept", wire.EventStream)
		s.stream.ServeHTTP(w, in)
	}}, nil
}
