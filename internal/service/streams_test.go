package service

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
)

// Stop ends the streams, and closes those whose clients do not read.
func TestFaultStopWithStreams(t *testing.T) {
	t.Parallel() // mostly waits
	v := start(t)
	token := fill(t, v)
	request := fmt.Sprintf("GET /v1/orgs/acme/events?last_event_id=earliest HTTP/1.1\r\nHost: ledger\r\n"+
		"Authorization: Bearer %s\r\nAccept: text/event-stream\r\n\r\n", token)
	unread := dial(t, v, "").(*net.TCPConn)
	unread.SetReadBuffer(4096)
	for v.clients.len() == 0 {
		time.Sleep(time.Millisecond)
	}
	for c := range v.clients.open {
		c.Conn.(*net.TCPConn).SetWriteBuffer(4096)
	}
	fmt.Fprint(unread, request)
	waitForBlockedWrite(v.clients)

	response, err := http.ReadResponse(bufio.NewReader(dial(t, v, request)), nil)
	must.OK(t, err)
	body := make(chan error)
	go func() {
		_, err := io.Copy(io.Discard, response.Body)
		body <- err
	}()
	if err := v.Stop(0, 2*time.Second); err != nil {
		t.Error(err)
	}
	if err := <-body; err != nil {
		t.Errorf("the stream that is read ended with %v", err)
	}
	if n := v.clients.len(); n > 0 {
		t.Errorf("%d connections are open", n)
	}
}

// fill creates an org with about 120 KB of events, and returns a token that can read
// them.
func fill(t *testing.T, v *Instance) (secret string) {
	t.Helper()
	host, err := v.Host()
	check := func(err error) {
		t.Helper()
		must.OK(t, err)
	}
	check(err)
	_, err = host.CreateOrg(t.Context(), ledger.NewOrg{Name: "acme"})
	check(err)
	_, err = host.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: "api"})
	check(err)
	token, err := host.CreateToken(t.Context(), "acme", ledger.NewToken{Name: "reader", Scope: ledger.Read})
	check(err)

	for i := range 500 {
		contract := fmt.Sprintf(`{"requirements":[{"state":"ATTESTED","predicate":"test:%d"}]}`, i)
		_, err := host.SetPolicy(t.Context(), "acme", "api", []byte(contract), "*")
		check(err)
	}
	return token.Secret
}
