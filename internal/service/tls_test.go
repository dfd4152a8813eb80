package service

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/tlstest"
)

// TLS is served with HTTP/1.1 and HTTP/2, streams too.
func TestTLS(t *testing.T) {
	v, roots, _ := startTLS(t)
	token := fill(t, v)
	if !strings.HasPrefix(v.URL, "https://127.0.0.1:") {
		t.Errorf("URL = %s, want https", v.URL)
	}

	for _, version := range []int{1, 2} {
		client := clientOfTLS(t, roots, version)
		response, err := client.Get(v.URL + "/healthz")
		must.OK(t, err)
		response.Body.Close()
		if response.StatusCode != 200 || response.ProtoMajor != version {
			t.Errorf("%s over %s, want 200 over HTTP/%d", response.Status, response.Proto, version)
		}

		events := openStream(t, client, v.URL, token)
		if line, err := events.ReadString('\n'); err != nil || line == "" {
			t.Errorf("HTTP/%d: the stream's first line is %q, %v", version, line, err)
		}
	}
	if err := v.Stop(0, time.Second); err != nil {
		t.Error(err)
	}
}

// TLS 1.1 and plain HTTP are refused.
func TestTLSRefuses(t *testing.T) {
	v, roots, _ := startTLS(t)
	defer v.Stop(0, 0)
	address := v.clients.Addr().String()
	_, err := tls.Dial("tcp", address, &tls.Config{RootCAs: roots, MaxVersion: tls.VersionTLS11})
	if err == nil {
		t.Error("TLS 1.1 is accepted")
	}
	if response := get(t, "http://"+address+"/healthz"); response.StatusCode != 400 {
		t.Errorf("plain HTTP: %s, want 400", response.Status)
	}
}

// New files are served to new connections, without a gap, and those that are open go on.
func TestTLSReload(t *testing.T) {
	t.Parallel() // mostly waits
	v, roots, files := startTLS(t)
	defer v.Stop(0, 0)
	kept := clientOfTLS(t, roots, 1)
	request := func() {
		t.Helper()
		response, err := kept.Get(v.URL + "/healthz")
		must.OK(t, err)
		io.Copy(io.Discard, response.Body)
		response.Body.Close()
	}
	request()
	dialled := dials(kept)

	if serial := servedSerial(t, v, roots); serial != 1 {
		t.Fatalf("serial number %d is served, want 1", serial)
	}
	for _, spoiled := range []string{files.Cert, files.Key} { // for instance half of a copy
		content := read(t, spoiled)
		write(t, spoiled, content[:len(content)/2])
		time.Sleep(recheckFiles + 100*time.Millisecond)
		if serial := servedSerial(t, v, roots); serial != 1 {
			t.Fatalf("serial number %d is served with half of %s, want 1", serial, spoiled)
		}
		write(t, spoiled, content)
	}

	files.Make(t, 2, time.Now().Add(time.Hour), roots)
	time.Sleep(recheckFiles + 100*time.Millisecond)
	if serial := servedSerial(t, v, roots); serial != 2 {
		t.Errorf("serial number %d is served after the change, want 2", serial)
	}
	os.Remove(files.Key)
	time.Sleep(recheckFiles + 100*time.Millisecond)
	if serial := servedSerial(t, v, roots); serial != 2 {
		t.Errorf("serial number %d is served without the key's file, want 2", serial)
	}
	request()
	if again := dials(kept); again != dialled {
		t.Errorf("the open connection was lost: %d dials, want %d", again, dialled)
	}
}

func TestTLSFilesMustFit(t *testing.T) {
	s := config.Default()
	s.Listen, s.Database = "127.0.0.1:0", config.Database(filepath.Join(t.TempDir(), "ledger.db"))
	first, second := tlstest.NewFiles(t), tlstest.NewFiles(t)
	first.Make(t, 1, time.Now().Add(time.Hour), nil)
	second.Make(t, 2, time.Now().Add(time.Hour), nil)
	s.TLS = config.TLS{Cert: first.Cert, Key: second.Key}
	_, err := Start(t.Context(), s, discardLog())
	if err == nil || !strings.Contains(err.Error(), "tls.cert and tls.key") {
		t.Errorf("error %v, want one that names tls.cert and tls.key", err)
	}
	if _, err := os.Stat(string(s.Database)); err == nil {
		t.Error("a database was created")
	}
}

// The limits on the place of a connection hold when it is encrypted: one whose client does not
// finish the handshake does not keep others out.
func TestTLSUnfinishedHandshakes(t *testing.T) {
	v, roots, _ := startTLS(t)
	for range 20 {
		dial(t, v, "\x16\x03\x01") // the beginning of a record
	}
	response, err := clientOfTLS(t, roots, 2).Get(v.URL + "/healthz")
	must.OK(t, err)
	response.Body.Close()

	begin := time.Now()
	if err := v.Stop(0, 300*time.Millisecond); err != nil {
		t.Error(err)
	}
	if d := time.Since(begin); d > 20*time.Second {
		t.Errorf("the server stopped after %v", d)
	}
}

// startTLS starts a service with a certificate that the roots trust.
func startTLS(t *testing.T) (*Instance, *x509.CertPool, tlstest.Files) {
	t.Helper()
	files, roots := tlstest.NewFiles(t), x509.NewCertPool()
	files.Make(t, 1, time.Now().Add(time.Hour), roots)
	s := config.Default()
	s.Listen, s.Database = "127.0.0.1:0", config.Database(filepath.Join(t.TempDir(), "ledger.db"))
	s.TLS = config.TLS{Cert: files.Cert, Key: files.Key}
	v, err := Start(t.Context(), s, discardLog())
	must.OK(t, err)
	return v, roots, files
}

// read returns the content of a file.
func read(t *testing.T, file string) []byte {
	t.Helper()
	return must.Read(t, file)
}

func write(t *testing.T, file string, content []byte) {
	t.Helper()
	must.OK(t, os.WriteFile(file, content, 0o600))
}

// A countingDialer counts connections.
type countingDialer struct {
	*http.Transport
	mu    sync.Mutex
	dials int
}

// clientOfTLS returns a client that speaks only one version of HTTP.
func clientOfTLS(t *testing.T, roots *x509.CertPool, version int) *http.Client {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(version == 1)
	protocols.SetHTTP2(version == 2)
	d := &countingDialer{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, Protocols: protocols}}
	d.Transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		d.mu.Lock()
		d.dials++
		d.mu.Unlock()
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	t.Cleanup(d.CloseIdleConnections)
	return &http.Client{Transport: d}
}

// dials returns how many connections a client has made.
func dials(c *http.Client) int {
	d := c.Transport.(*countingDialer)
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dials
}

// servedSerial returns the serial number of the certificate for a new connection.
func servedSerial(t *testing.T, v *Instance, roots *x509.CertPool) int64 {
	t.Helper()
	c := must.Get(tls.Dial("tcp", v.clients.Addr().String(), &tls.Config{RootCAs: roots}))(t)
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

// openStream opens the stream of the org acme, from its first event.
func openStream(t *testing.T, client *http.Client, url, token string) *bufio.Reader {
	t.Helper()
	request := must.Get(http.NewRequest("GET", url+"/v1/orgs/acme/events?last_event_id=earliest", nil))(t)
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Accept", "text/event-stream")
	response, err := client.Do(request)
	if err == nil && response.StatusCode != 200 {
		err = errors.New(response.Status)
	}
	must.OK(t, err)
	t.Cleanup(func() { response.Body.Close() })
	return bufio.NewReader(response.Body)
}
