package service

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/internal/config"
)

// AskReady returns nil if the server with these settings, on this host, is ready.
func AskReady(ctx context.Context, s config.Settings) error {
	transport := &http.Transport{
		// It is an address of this host, for which no certificate is made.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, ServerName: firstDomain(s.TLS)},
	}
	url := "http://"
	if s.TLS.Enabled() {
		url = "https://"
	}

	if path, ok := config.SocketPath(s.Listen); ok {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}
		return AskReadyAt(ctx, transport, url+"localhost")
	}
	if s.Listen == config.ListenSystemd {
		return errors.New("systemd has the address of the server: name it with --server")
	}
	return AskReadyAt(ctx, transport, browserURL(url+s.Listen))
}

// firstDomain returns a name for which a server with these settings has a certificate.
func firstDomain(s config.TLS) string {
	if len(s.Domains) > 0 {
		return s.Domains[0]
	}
	return ""
}

// AskReadyAt returns nil if the server at a URL is ready.
func AskReadyAt(ctx context.Context, transport http.RoundTripper, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(url, "/")+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return fmt.Errorf("ask whether the server is ready: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		return nil
	}

	const maxProblem = 64 << 10
	var problem struct {
		Detail string `json:"detail"`
	}
	err = json.UnmarshalRead(io.LimitReader(response.Body, maxProblem), &problem)
	if err != nil || problem.Detail == "" {
		return fmt.Errorf("not ready: %s answers with %s", request.URL, response.Status)
	}
	return errors.New(problem.Detail)
}
