package session

import (
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

func TestLinkWorksOnceAndExpires(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	links := NewLinks(func() time.Time { return now })
	r := httptest.NewRequest("GET", "http://127.0.0.1:8080/login", nil)
	r.RemoteAddr = "127.0.0.1:50000"

	key, used := links.Add(ledger.Token{ID: "tok_1", Secret: "ldg_1"}, time.Minute)
	for range 3 { // looking at it does not use it up
		if token, err := links.Check(r, key); err != nil || token.ID != "tok_1" || token.Secret != "" {
			t.Fatalf("Check: %+v, %v", token, err)
		}
	}
	if _, err := links.Take(r, key+"A"); err == nil {
		t.Error("another key works")
	}
	select {
	case <-used:
		t.Error("used before Take")
	default:
	}
	if token, err := links.Take(r, key); err != nil || token.Secret != "ldg_1" {
		t.Fatalf("Take: %+v, %v", token, err)
	}
	<-used
	if _, err := links.Take(r, key); err == nil {
		t.Error("a link works twice")
	}

	key, _ = links.Add(ledger.Token{Secret: "ldg_2"}, time.Minute)
	now = now.Add(time.Minute)
	if _, err := links.Check(r, key); err == nil {
		t.Error("Check accepts an expired link")
	}
	if _, err := links.Take(r, key); err == nil {
		t.Error("an expired link works")
	}
}

// A link works on the machine of the server only, and not through a proxy on it.
func TestLinkIsLocal(t *testing.T) {
	links := NewLinks(time.Now)
	key, _ := links.Add(ledger.Token{}, time.Hour)
	for _, test := range []struct {
		remote, host, header string
		want                 bool
	}{
		{"127.0.0.1:50000", "127.0.0.1:8080", "", true},
		{"127.0.0.1:50000", "localhost:8080", "", true},
		{"[::1]:50000", "[::1]:8080", "", true},
		{"[::ffff:127.0.0.1]:50000", "localhost", "", true},
		{"192.0.2.7:50000", "127.0.0.1:8080", "", false},
		{"192.0.2.7:50000", "ledger.example", "", false},
		{"127.0.0.1:50000", "ledger.example", "", false},
		{"127.0.0.1:50000", "127.0.0.1:8080", "X-Forwarded-For", false},
		{"127.0.0.1:50000", "127.0.0.1:8080", "Forwarded", false},
		{"", "127.0.0.1:8080", "", false},
		{"@", "127.0.0.1:8080", "", false},
	} {
		r := httptest.NewRequest("GET", "/login", nil)
		r.RemoteAddr, r.Host = test.remote, test.host
		if test.header != "" {
			r.Header.Set(test.header, "192.0.2.7")
		}
		if _, err := links.Check(r, key); (err == nil) != test.want {
			t.Errorf("from %s for %s with %q: %v, want %t", test.remote, test.host, test.header, err, test.want)
		}
	}
}

func TestLinksAreBounded(t *testing.T) {
	links := NewLinks(time.Now)
	r := httptest.NewRequest("GET", "http://localhost/login", nil)
	r.RemoteAddr = "127.0.0.1:50000"
	var keys []string
	for i := range maxLinks + 2 {
		key, _ := links.Add(ledger.Token{ID: fmt.Sprint(i)}, time.Duration(i+1)*time.Minute)
		keys = append(keys, key)
	}
	if n := len(links.pool.values); n != maxLinks {
		t.Errorf("%d links", n)
	}
	for i, key := range keys {
		if _, err := links.Check(r, key); (err == nil) != (i >= 2) {
			t.Errorf("link %d: %v", i, err)
		}
	}
}
