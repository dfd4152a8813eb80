package evidence

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
)

// inProcess returns a reader of what a handler answers.
func inProcess(t *testing.T, answer http.HandlerFunc) *reader {
	t.Helper()
	c, err := client.New("http://host", client.Options{HTTPClient: &http.Client{Transport: client.InProcess(answer)}})
	must.OK(t, err)
	return &reader{c, "acme", "api"}
}

func problem(w http.ResponseWriter, status int, code ledger.Code) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"status": %d, "title": "No", "detail": "no: %s", "code": %q}`, status, code, code)
}

// A server that has too many requests is asked again, but not forever.
func TestBusyServerIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, busy := 0, 3
		r := inProcess(t, func(w http.ResponseWriter, _ *http.Request) {
			if asked++; asked <= busy {
				problem(w, http.StatusTooManyRequests, ledger.CodeTooManyRequests)
				return
			}
			_, _ = io.WriteString(w, "body")
		})
		if body, err := r.body(t.Context(), "evt_1"); err != nil || string(body) != "body" || asked != 4 {
			t.Errorf("%q, %v after %d requests", body, err, asked)
		}

		asked, busy = 0, 1000
		if _, err := r.body(t.Context(), "evt_1"); client.CodeOf(err) != ledger.CodeTooManyRequests || asked != maxTries {
			t.Errorf("%v after %d requests", err, asked)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.body(ctx, "evt_1"); err == nil {
			t.Error("no error after it was cancelled")
		}
	})
}

// A commit that changes while it is read is read again: its parts are of one moment.
func TestCommitIsReadAtOneMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attested, until := 0, 3
		r := inProcess(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch {
			case strings.HasSuffix(r.URL.Path, "/attestations"):
				list := strings.TrimSuffix(strings.Repeat(`{"id":"att_1","org":"acme","repo":"api"},`, attested), ",")
				fmt.Fprintf(w, `{"data":[%s],"next_cursor":""}`, list)
				attested = min(attested+1, until) // one more is recorded
			case strings.HasSuffix(r.URL.Path, "/transitions"):
				_, _ = io.WriteString(w, `{"data":[],"next_cursor":""}`)
			default:
				fmt.Fprintf(w, `{"org":"acme","repo":"api","sha":"abc","attested":%d}`, attested)
			}
		})

		c, err := r.commit(t.Context(), "abc")
		if err != nil || len(c.Attestations) != 3 || c.Record.Attested != 3 {
			t.Errorf("%d attestations, and %d are counted, %v", len(c.Attestations), c.Record.Attested, err)
		}
		attested, until = 0, 1000
		if _, err := r.commit(t.Context(), "abc"); err == nil || !strings.Contains(err.Error(), "changes all the time") {
			t.Errorf("a commit that never rests: %v", err)
		}
	})
}

func TestCommitsAreLimited(t *testing.T) {
	r := inProcess(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		list := make([]string, MaxCommits+1)
		for i := range list {
			list[i] = fmt.Sprintf(`{"id":"att_%d","org":"acme","repo":"api","commit":"%040x",`+
				`"recorded_at":"2026-01-01T00:00:00.000Z"}`, i, i)
		}
		fmt.Fprintf(w, `{"data":[%s],"next_cursor":""}`, strings.Join(list, ","))
	})
	now, err := ledger.ParseSince("2026-06-01")
	must.OK(t, err)
	if _, err := r.attested(t.Context(), 1, now); err == nil || !strings.Contains(err.Error(), "more than 10000 commits") {
		t.Errorf("too many commits: %v", err)
	}
	if list, err := r.attested(t.Context(), 1, 2); err != nil || len(list) != 0 {
		t.Errorf("%d commits that were attested later, %v", len(list), err)
	}
}

func TestListsAreLimited(t *testing.T) {
	page := func(client.Query) (ledger.Page[int], error) {
		return ledger.Page[int]{Data: []int{1, 2}, NextCursor: "more"}, nil
	}
	if _, err := all(t.Context(), 9, page); err == nil || !strings.Contains(err.Error(), "more than 9") {
		t.Errorf("a list without an end: %v", err)
	}
}
