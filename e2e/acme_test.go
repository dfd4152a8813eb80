package e2e_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/internal/tlstest"
)

// pebbleConfig is that of an ACME server which validates tls-alpn-01 at one port.
const pebbleConfig = `{"pebble": {"listenAddress": %q, "managementListenAddress": %q, "certificate": %q,
	"privateKey": %q, "httpPort": 1, "tlsPort": %s}}`

// A server fetches its certificate by ACME, and has it still after a restart.
func TestACME(t *testing.T) {
	testenv.Need(t, "pebble", "pebble-challtestsrv")
	t.Parallel()
	o := newOrg(t)
	authority := startPebble(t, o.address)
	o.env = append(o.env, "SSL_CERT_FILE="+authority.trusted, "LEDGERD_TLS_DOMAINS=ledger.example.com",
		"LEDGERD_TLS_DIRECTORY="+authority.directory)
	o.start()

	first := o.servedCertificate("ledger.example.com")
	if err := first.VerifyHostname("ledger.example.com"); err != nil {
		t.Error(err)
	}
	chain := x509.VerifyOptions{Roots: authority.roots(t), Intermediates: authority.issuer(t)}
	if _, err := first.Verify(chain); err != nil {
		t.Errorf("the certificate is not that of the authority: %v", err)
	}
	if files, err := os.ReadDir(o.database + "-acme"); err != nil || len(files) < 2 {
		t.Errorf("the folder of the account and the certificate has %d files, %v, want at least 2", len(files), err)
	}
	if _, err := tls.Dial("tcp", o.address, &tls.Config{ServerName: "other.example.com"}); err == nil {
		t.Error("a certificate was served for a name that is not in tls.domains")
	}

	o.kill()
	authority.stop()
	o.start()
	if again := o.servedCertificate("ledger.example.com"); again.SerialNumber.Cmp(first.SerialNumber) != 0 {
		t.Error("the restarted server has another certificate")
	}
}

// servedCertificate returns the certificate that a server has for a name.
func (o *org) servedCertificate(name string) *x509.Certificate {
	o.t.Helper()
	// The authority of the test is not a root of this machine: the caller verifies.
	c, err := tls.DialWithDialer(&net.Dialer{Timeout: 30 * time.Second}, "tcp", o.address,
		&tls.Config{ServerName: name, InsecureSkipVerify: true})
	if err != nil {
		o.t.Fatalf("%v\n%s", err, o.log.String())
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0]
}

// A pebble is an ACME server of its own, which resolves all names to this machine.
type pebble struct {
	directory, management string
	trusted               string // a PEM file
	client                *http.Client
	stop                  func()
}

// startPebble starts an ACME server that validates at the port of an address.
func startPebble(t *testing.T, validates string) *pebble {
	t.Helper()
	folder, listen, management, dns := t.TempDir(), freeAddress(t), freeAddress(t), freeAddress(t)
	files, roots := tlstest.NewFiles(t), x509.NewCertPool()
	files.Make(t, 1, time.Now().Add(time.Hour), roots)
	p := &pebble{directory: "https://" + listen + "/dir", management: "https://" + management, trusted: files.Cert,
		client: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}}
	_, port, err := net.SplitHostPort(validates)
	must.OK(t, err)
	config := filepath.Join(folder, "pebble.json")
	settings := fmt.Appendf(nil, pebbleConfig, listen, management, files.Cert, files.Key, port)
	must.OK(t, os.WriteFile(config, settings, 0o600))

	names := exec.Command("pebble-challtestsrv", "-defaultIPv4", "127.0.0.1", "-defaultIPv6", "", "-dnsserver", dns,
		"-doh", "", "-http01", "", "-https01", "", "-tlsalpn01", "", "-management", freeAddress(t))
	authority := exec.Command("pebble", "-config", config, "-dnsserver", dns)
	authority.Env = append(os.Environ(), "PEBBLE_VA_NOSLEEP=1")
	for _, program := range []*exec.Cmd{names, authority} {
		must.OK(t, program.Start())
		t.Cleanup(func() {
			program.Process.Kill()
			program.Wait()
		})
	}
	p.stop = func() { authority.Process.Kill() }
	waitFor(t, "the ACME directory", 10*time.Second, func() bool {
		response, err := p.client.Get(p.directory)
		if err == nil {
			response.Body.Close()
		}
		return err == nil
	})
	waitFor(t, "the names", 10*time.Second, func() bool {
		c, err := net.Dial("tcp", dns)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return p
}

// roots and issuer return the certificates with which the authority signs.
func (p *pebble) roots(t *testing.T) *x509.CertPool  { return p.pool(t, "/roots/0") }
func (p *pebble) issuer(t *testing.T) *x509.CertPool { return p.pool(t, "/intermediates/0") }

func (p *pebble) pool(t *testing.T, path string) *x509.CertPool {
	t.Helper()
	response := must.Get(p.client.Get(p.management + path))(t)
	defer response.Body.Close()
	content := must.Get(io.ReadAll(response.Body))(t)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(content)
	return pool
}
