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

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// maxPage is what a page may weigh, before it is compressed.
const maxPage = 300 << 10

// A visitor asks the pages themselves, without a network between.
type visitor struct {
	t       testing.TB
	site    http.Handler
	cookies []*http.Cookie
}

func (e *env) visitor(token string) visitor {
	e.t.Helper()
	at, err := url.Parse(e.url)
	check(e.t, err)
	jar := e.signIn(token).client.Jar.(*cookiejar.Jar)
	return visitor{e.t, e.site.Handler(), jar.Cookies(at)}
}

// get returns how many bytes the page comes in.
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

// measure has the page made again and again, as a browser asks for it, and
// reports how large it is.
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
		"list of an author": "/orgs/acme/repos/api?author=author-7@acme.example",
		"list of a branch":  "/orgs/acme/repos/api?branch=topic-9950",
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
		check(b, err)
		for n := range 20 * (n % 2) { // every other repo has commits in flight
			_, _, err := e.host.Register(b.Context(), "acme", repo, hashOf(n), registration(n, 0))
			check(b, err)
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

// TestPageSizes holds the pages to what they may weigh where their texts are as
// long as people write them.
func TestPageSizes(t *testing.T) {
	e := newEnv(t)
	e.fill(300)
	e.addBusyCommit(200, 200)
	v := e.visitor(e.reader)
	for _, path := range []string{"", "?view=list", "/commits/" + busyCommit} {
		if n := v.get("/orgs/acme/repos/api"+path, "identity"); n > maxPage {
			t.Errorf("%q has %d bytes", path, n)
		}
	}
}

// fill registers commits of every state: the last 200 are in flight and
// overlap, each with some others.
func (e *env) fill(commits int) {
	e.t.Helper()
	signers := map[string]*signer{"test:go": e.signer("cn=ci,ou=build,o=acme"),
		"review:code": e.signer("cn=alice,ou=people,o=acme"), "deploy:eu": e.signer("cn=deployer,ou=ops,o=acme")}
	numbers := make(chan int)
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			for n := range numbers {
				e.push(hashOf(n), registration(n, commits))
				switch n % 10 {
				case 0: // DRAFT
				case 1:
					e.attest(signers["test:go"], hashOf(n), "test:go", ledger.Fail)
				case 2:
					e.attest(signers["test:go"], hashOf(n), "test:go", ledger.Pass)
				case 3:
					e.attest(signers["test:go"], hashOf(n), "test:go", ledger.Pass)
					e.attest(signers["review:code"], hashOf(n), "review:code", ledger.Pass)
				default:
					for predicate, s := range signers {
						e.attest(s, hashOf(n), predicate, ledger.Pass)
					}
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

// hashOf returns an id that is as hard to compress as a commit's.
func hashOf(n int) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte{byte(n), byte(n >> 8)}))[:40]
}

func registration(n, commits int) ledger.Registration {
	author := fmt.Sprintf("author-%d", n%23)
	r := ledger.Registration{
		Branch: "main", Author: ledger.Author{Name: author, Email: author + "@acme.example"}, CommittedAt: 1795424400123,
		Message: fmt.Sprintf("server: change %d of the many that there are, in a line of usual length\n\nAnd a body "+
			"that tells why, of some sentences, as they are written where\nthe history is read by those who come later.\n", n),
	}
	if n >= commits-200 {
		r.Branch = fmt.Sprintf("topic-%d", n)
		r.Changes = []radar.Change{lineEdit(fmt.Sprintf("server/file-%d.go", n%40), n%7*10+1),
			lineEdit(fmt.Sprintf("docs/page-%d.md", n%3), n%11*30+1)}
	}
	return r
}

// edited returns a change of one line of a file that all find alike: the same
// line is HIGH, one within 25 lines MEDIUM, another file of the directory LOW.
func lineEdit(path string, line int) radar.Change {
	hash := func(kind string, gap int) string { return fmt.Sprintf("%s%014x", kind, gap) }
	return radar.Change{
		Path: path, Status: "M", OldMode: "100644", Mode: "100644",
		OldBlob: fmt.Sprintf("%040x", len(path)), Blob: fmt.Sprintf("%032x%08x", len(path), line),
		Hunks: []radar.Hunk{{Start: line, Lines: 1, Added: 1, Text: hash("e1", line),
			Near: []string{hash("aa", line-1), hash("aa", line)}, Far: []string{hash("bb", line-1), hash("bb", line)}}},
	}
}

// often is the commit of attestOften.
const busyCommit = "0123456789abcdef0123456789abcdef01234567"

// attestOften records so many attestations about one commit, which
// overlaps with others: by so many signers, of 10 predicates, every tenth a fail.
func (e *env) addBusyCommit(attestations, signing int) {
	e.t.Helper()
	var signers []*signer
	for n := range signing {
		signers = append(signers, e.signer(fmt.Sprintf("cn=runner-%d,ou=build farm of the north,o=acme", n)))
	}
	e.push(busyCommit, ledger.Registration{Branch: "topic", Message: "server: what everybody looks at\n\nAt length.",
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
		e.clock.advance(time.Second) // or it would be the same statement again
		e.attest(signers[n%signing], busyCommit, fmt.Sprintf("test:part-%d", n%10), status)
	}
}
