package web_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// maxPage is the maximum size of a page in bytes, uncompressed.
const maxPage = 300 << 10

// A visitor is a signed-in visitor that calls the handler without a network.
type visitor struct {
	t       testing.TB
	site    http.Handler
	cookies []*http.Cookie
}

func (e *env) visitor(token string) visitor {
	e.t.Helper()
	at := must.Get(url.Parse(e.url))(e.t)
	jar := e.signIn(token).client.Jar.(*cookiejar.Jar)
	return visitor{e.t, e.site.Handler(), jar.Cookies(at)}
}

// get returns the size of the page in bytes.
func (v visitor) get(path, encoding string) int {
	v.t.Helper()
	r := httptest.NewRequestWithContext(v.t.Context(), "GET", path, nil)
	r.Header.Set("Accept-Encoding", encoding)
	for _, c := range v.cookies {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	v.site.ServeHTTP(w, r)
	if w.Code != 200 {
		v.t.Fatalf("%s: %d: %s", path, w.Code, w.Body)
	}
	return w.Body.Len()
}

// measure benchmarks a page as a browser requests it, and reports its size.
func (v visitor) measure(b *testing.B, path string) {
	plain, compressed := v.get(path, "identity"), 0
	if plain > maxPage {
		b.Errorf("%s has %d bytes", path, plain)
	}
	b.ReportAllocs()
	for b.Loop() {
		compressed = v.get(path, "gzip")
	}
	b.ReportMetric(float64(plain), "bytes/page")
	b.ReportMetric(float64(compressed), "gzip-bytes/page")
}

func BenchmarkRepoPage(b *testing.B) {
	e := newEnv(b)
	e.fill(10_000)
	v := e.visitor(e.reader)
	for name, path := range map[string]string{
		"board":             "/orgs/acme/repos/api",
		"list":              "/orgs/acme/repos/api?view=list",
		"list of an author": "/orgs/acme/repos/api?view=list&author=author-7@acme.example",
		"list of a branch":  "/orgs/acme/repos/api?view=list&branch=topic-9950",
	} {
		b.Run(name, func(b *testing.B) { v.measure(b, path) })
	}
}

func BenchmarkOrgPage(b *testing.B) {
	e := newEnv(b)
	e.fill(1000)
	for n := range 49 {
		repo := fmt.Sprintf("repo-%02d", n)
		_, err := e.host.CreateRepo(b.Context(), "acme", ledger.NewRepo{Name: repo})
		must.OK(b, err)
		for n := range 20 * (n % 2) { // every other repo has commits in flight
			_, _, err := e.host.Register(b.Context(), "acme", repo, hashOf(n), registration(n, 0))
			must.OK(b, err)
		}
	}
	for range 200 {
		e.token("acme", ledger.Read)
	}
	for scope, token := range map[string]string{"reader": e.reader, "admin": e.admin} {
		v := e.visitor(token)
		b.Run(scope, func(b *testing.B) { v.measure(b, "/orgs/acme") })
	}
}

func BenchmarkCommitPage(b *testing.B) {
	e := newEnv(b)
	e.addBusyCommit(200, 20)
	v := e.visitor(e.reader)
	v.measure(b, "/orgs/acme/repos/api/commits/"+busyCommit)
}

// TestPageSizes checks that pages with texts of usual length are not too large.
func TestPageSizes(t *testing.T) {
	e := newEnv(t)
	e.fill(300)
	e.addBusyCommit(200, 80)
	v := e.visitor(e.reader)
	for _, path := range []string{"", "?view=list", "/commits/" + busyCommit} {
		if n := v.get("/orgs/acme/repos/api"+path, "identity"); n > maxPage {
			t.Errorf("%q has %d bytes", path, n)
		}
	}
}

// fill registers commits in every state. The last 200 are in flight, and each
// overlaps with some others.
func (e *env) fill(commits int) {
	e.t.Helper()
	ci, alice := e.signer("cn=ci,ou=build,o=acme"), e.signer("cn=alice,ou=people,o=acme")
	deployer := e.signer("cn=deployer,ou=ops,o=acme")

	numbers := make(chan int)
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			for n := range numbers {
				e.push(hashOf(n), registration(n, commits))
				rest := n % 10
				if rest == 1 {
					e.attest(ci, hashOf(n), "test:go", ledger.Fail)
				}
				if rest > 1 {
					e.attest(ci, hashOf(n), "test:go", ledger.Pass)
				}
				if rest > 2 {
					e.attest(alice, hashOf(n), "review:code", ledger.Pass)
				}
				if rest > 3 {
					e.attest(deployer, hashOf(n), "deploy:prod", ledger.Pass)
				}
			}
		})
	}

	for n := range commits {
		numbers <- n
	}
	close(numbers)
	all.Wait()
}

// hashOf returns an ID that is as hard to compress as a commit's SHA.
func hashOf(n int) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte{byte(n), byte(n >> 8)}))[:40]
}

// registration returns the n-th registration of commits. The last 200 have a
// branch and changes of their own.
func registration(n, commits int) ledger.Registration {
	author := fmt.Sprintf("author-%d", n%23)
	r := ledger.Registration{
		Branch: "main", Author: ledger.Author{Name: author, Email: author + "@acme.example"}, CommittedAt: 1795424400123,
		Message: fmt.Sprintf("server: change %d, with a subject line of the usual length for a commit\n\nThe body explains "+
			"in a few sentences why the change is needed, as in a project\nwhose history is read by later developers.\n", n),
	}
	if n >= commits-200 {
		r.Branch = fmt.Sprintf("topic-%d", n)
		r.Changes = []radar.Change{lineEdit(fmt.Sprintf("server/file-%d.go", n%40), n%7*10+1),
			lineEdit(fmt.Sprintf("docs/page-%d.md", n%3), n%11*30+1)}
	}
	return r
}

// lineEdit returns a change of one line of a file that is the same for all
// commits. Changes of the same or an adjacent line overlap at level HIGH, within
// 25 lines at MEDIUM, in other files of the directory at LOW.
func lineEdit(path string, line int) radar.Change {
	hash := func(kind string, gap int) string { return fmt.Sprintf("%s%014x", kind, gap) }
	return radar.Change{
		Path: path, Status: "M", OldMode: "100644", Mode: "100644",
		OldBlob: fmt.Sprintf("%040x", len(path)), Blob: fmt.Sprintf("%032x%08x", len(path), line),
		Hunks: []radar.Hunk{{Start: line, Lines: 1, Added: 1, Text: hash("e1", line),
			Near: []string{hash("aa", line-1), hash("aa", line)}, Far: []string{hash("bb", line-1), hash("bb", line)}}},
	}
}

// busyCommit is the commit of addBusyCommit.
const busyCommit = "0123456789abcdef0123456789abcdef01234567"

// addBusyCommit registers a commit that overlaps with others, and records
// attestations of 10 predicates by a number of signers. Every tenth is a fail.
func (e *env) addBusyCommit(attestations, signerCount int) {
	e.t.Helper()
	var signers []*signer
	for n := range signerCount {
		signers = append(signers, e.signer(fmt.Sprintf("cn=runner-%d,ou=build farm of the north,o=acme", n)))
	}

	e.push(busyCommit, ledger.Registration{Branch: "topic",
		Message: "server: a commit with many attestations\n\nAt length.",
		Author:  ledger.Author{Name: "Ada", Email: "ada@acme.example"},
		Changes: []radar.Change{lineEdit("server/file-1.go", 1), lineEdit("docs/page-1.md", 5)}})
	for n := range 12 {
		e.push(commitID(1_000_000+n), ledger.Registration{Branch: fmt.Sprintf("other-%d", n), Message: "docs: another",
			Changes: []radar.Change{lineEdit("server/file-1.go", n+1), lineEdit("docs/page-1.md", 5)}})
	}
	for n := range attestations {
		status := ledger.Pass
		if n%10 == 9 {
			status = ledger.Fail
		}
		e.clock.advance(time.Second) // otherwise the statements would be equal
		e.attest(signers[n%signerCount], busyCommit, fmt.Sprintf("test:part-%d", n%10), status)
	}
}
