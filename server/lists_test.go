package server

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
)

// Following the cursors of a list while rows are added returns each row that existed
// at the start exactly once, in order.
func TestPagesWhileRowsAreAdded(t *testing.T) {
	const rows = 7
	for name, test := range map[string]struct {
		path string // :webhook is replaced by the id of a webhook for attestations
		// add adds the n-th row.
		add func(b *backend, ci *signer, n int)
		// key is the field that identifies a row.
		key string
		// newestFirst reports whether added rows come before the first page.
		newestFirst bool
		// initial is the number of rows of a new backend.
		initial int
	}{
		"repos": {"/v1/orgs/acme/repos", func(b *backend, _ *signer, n int) {
			b.post("/v1/orgs/acme/repos", fmt.Sprintf(`{"name":"r%d"}`, n)).want(201)
		}, "name", false, 1},
		"commits": {"/v1/orgs/acme/repos/api/commits?state=DRAFT", func(b *backend, _ *signer, n int) {
			b.put(commitPath(commitID(n)), "{}").want(201)
		}, "sha", true, 0},
		"attestations": {attestationsPath + "?predicate=test:*", func(b *backend, ci *signer, n int) {
			b.attest(ci.statement(b.t, commitID(n), fmt.Sprintf("test:%d", n%3), ledger.Pass, n)).want(201)
		}, "id", true, 0},
		"attestations, oldest first": {attestationsPath + "?order=asc&identity=ci", func(b *backend, ci *signer, n int) {
			b.attest(ci.statement(b.t, commitID(n), "test:go", ledger.Pass, n)).want(201)
		}, "id", false, 0},
		"exceptions": {exceptionsPath, func(b *backend, ci *signer, n int) {
			b.except(ci, n%3, "review", time.Duration(n)*time.Minute).want(201)
		}, "attestation", true, 0},
		"active exceptions": {exceptionsPath + "?active=true", func(b *backend, ci *signer, n int) {
			if n == 0 {
				b.putPolicy("*", `{"requirements":[{"name":"review","state":"ATTESTED","predicate":"review:*"}],`+
					`"exceptions":{"signers":["cn=ci"]}}`).want(200)
			}
			b.except(ci, n, "review", time.Hour+time.Duration(n)*time.Minute).want(201)
		}, "attestation", false, 0},
		"transitions": {commitPath(commitID(1)) + "/transitions", func(b *backend, ci *signer, n int) {
			b.clock.advance(time.Second)
			predicate, status := "test:go", []ledger.Status{ledger.Fail, ledger.Pass}[n%2]
			if n == 0 {
				predicate = "lint:go" // to VALIDATING
			}
			b.attest(ci.statement(b.t, commitID(1), predicate, status, n)).want(201)
		}, "at", true, 0},
		"versions of a policy": {policyPath + "/versions", func(b *backend, _ *signer, n int) {
			b.putPolicy("*", fmt.Sprintf(`{"requirements":[{"state":"ATTESTED","predicate":"test:%d"}]}`, n)).want(200)
		}, "version", true, 1},
		"identities": {"/v1/orgs/acme/identities", func(b *backend, _ *signer, n int) {
			b.signer(fmt.Sprintf("cn=s%d,ou=build,o=acme", n))
		}, "id", false, 1},
		"tokens": {"/v1/orgs/acme/tokens", func(b *backend, _ *signer, _ int) { b.token("acme", "read") }, "id", false, 3},
		"predicates": {"/v1/orgs/acme/predicates", func(b *backend, ci *signer, n int) {
			b.attest(ci.statement(b.t, commitID(1), fmt.Sprintf("test:%d", n), ledger.Pass, n)).want(201)
		}, "predicate", false, 0},
		"events": {"/v1/orgs/acme/events?types=attestation", func(b *backend, ci *signer, n int) {
			b.attest(ci.statement(b.t, commitID(n), "test:go", ledger.Pass, n)).want(201)
		}, "id", false, 0},
		"events, newest first": {"/v1/orgs/acme/events?types=attestation&order=desc", func(b *backend, ci *signer, n int) {
			b.attest(ci.statement(b.t, commitID(n), "test:go", ledger.Pass, n)).want(201)
		}, "id", true, 0},
		"webhooks": {webhooksPath, func(b *backend, _ *signer, _ int) { b.webhook(`{"url":"https://ci.example.com"}`) }, "id",
			false, 0},
		"deliveries": {webhooksPath + "/:webhook/deliveries?status=pending", func(b *backend, ci *signer, n int) {
			b.attest(ci.statement(b.t, commitID(n), "test:go", ledger.Pass, n)).want(201)
		}, "id", true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBackend(t)
			ci := b.signer("cn=ci,ou=build,o=acme")
			if strings.Contains(test.path, ":webhook") {
				w := b.webhook(`{"url":"https://ci.example.com","events":["attestation"]}`)
				test.path = strings.Replace(test.path, ":webhook", w.ID, 1)
			}
			for n := range rows {
				test.add(b, ci, n)
			}

			whole, _ := b.page(withQuery(test.path, "limit=500"), test.key)
			if len(whole) != rows+test.initial {
				t.Fatalf("%d rows, want %d", len(whole), rows+test.initial)
			}

			var walked []string
			added := rows
			for next := withQuery(test.path, "limit=2"); next != ""; {
				var some []string
				some, next = b.page(next, test.key)
				walked = append(walked, some...)
				if added < rows+3 {
					test.add(b, ci, added)
					added++
				}
			}

			want := whole
			if !test.newestFirst {
				want, _ = b.page(withQuery(test.path, "limit=500"), test.key)
			}
			if fmt.Sprint(walked) != fmt.Sprint(want) {
				t.Errorf("pages with\n%v, want\n%v", walked, want)
			}
		})
	}
}

func withQuery(path, query string) string {
	if strings.Contains(path, "?") {
		return path + "&" + query
	}
	return path + "?" + query
}

// page returns the keys of a page's rows, and the path of the next page. It checks
// that the Link header and next_cursor agree.
func (b *backend) page(path, key string) (keys []string, next string) {
	b.t.Helper()
	resp := b.get(path).want(200)
	page := decode[ledger.Page[map[string]any]](resp)
	for _, row := range page.Data {
		keys = append(keys, fmt.Sprint(row[key]))
	}

	link := resp.header.Get("Link")
	if page.NextCursor == "" {
		if link != "" {
			b.t.Errorf("%s: last page with Link %s", path, link)
		}
		return keys, ""
	}
	next = strings.TrimSuffix(strings.TrimPrefix(link, "<"), `>; rel="next"`)
	current := must.Get(url.Parse(path))(b.t)
	following := must.Get(url.Parse(next))(b.t)
	query := current.Query()
	query.Set("cursor", page.NextCursor)
	if following.Path != current.Path || following.RawQuery != query.Encode() {
		b.t.Errorf("%s: Link: %s, want the same with cursor=%s", path, link, page.NextCursor)
	}
	return keys, next
}

func TestLimit(t *testing.T) {
	b := newBackend(t)
	for n := range 60 {
		b.put(commitPath(commitID(n)), "{}").want(201)
	}
	for query, want := range map[string]int{"": 50, "?limit=1": 1, "?limit=60": 60, "?limit=500": 60} {
		page := decode[ledger.Page[ledger.CommitSummary]](b.get("/v1/orgs/acme/repos/api/commits" + query).want(200))
		if len(page.Data) != want || (page.NextCursor != "") != (want < 60) {
			t.Errorf("%s: %d rows and cursor %q, want %d rows", query, len(page.Data), page.NextCursor, want)
		}
	}
	if empty := b.get("/v1/orgs/acme/identities").want(200); string(empty.body) != `{"data":[]}` {
		t.Errorf("empty list: %s", empty.body)
	}
}
