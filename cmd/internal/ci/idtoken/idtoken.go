// Package idtoken gets the OpenID Connect tokens of CI jobs, which identify a job.
package idtoken

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/cmd/internal/ci"
	"github.com/ledgerd/ledgerd/ledger"
)

// Variable is the variable with a token, for CI systems that put tokens into the environment.
const Variable = "LEDGERD_ID_TOKEN"

// The variables with which jobs of GitHub Actions and Forgejo Actions request tokens.
const (
	requestURL   = "ACTIONS_ID_TOKEN_REQUEST_URL"
	requestToken = "ACTIONS_ID_TOKEN_REQUEST_TOKEN"
)

// Variables returns the names of all variables with which a job gets a token.
func Variables() []string { return []string{Variable, requestURL, requestToken} }

const (
	maxToken    = 16 << 10 // bytes, as servers accept
	maxResponse = 64 << 10 // bytes
	attempts    = 3        // to request a token
)

// A Source gets tokens for the job that ledgerd runs in.
type Source struct {
	provider ci.Provider
	token    string // of the variable, if it is set
	url      *url.URL
	secret   string // for requests to url
	http     *http.Client
	pause    time.Duration // before another attempt
}

// Find returns the source of tokens in a job with an environment. If the job has no source, the
// error says how to give it tokens for an audience.
func Find(getenv func(string) string, audience string) (*Source, error) {
	provider := ci.DetectProvider(getenv)
	s := &Source{provider: provider, token: strings.TrimSpace(getenv(Variable)), pause: time.Second}
	if s.token != "" {
		return s, checkToken(s.token)
	}
	address := getenv(requestURL)
	if s.secret = getenv(requestToken); address == "" || s.secret == "" {
		return nil, fmt.Errorf("the job gets no OpenID Connect token (%s)", fix(provider, audience))
	}

	var err error
	if s.url, err = url.Parse(address); err != nil || !isSafe(s.url) {
		return nil, fmt.Errorf("%s is not an https URL", requestURL)
	}
	s.http = &http.Client{
		Timeout:       20 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return s, nil
}

// fix says what to change in the definition of a job, so that it gets tokens.
func fix(provider ci.Provider, audience string) string {
	switch provider {
	case ci.GitHub:
		return "add 'id-token: write' to the permissions of the job; jobs of forks get no tokens"
	case ci.Forgejo:
		return "set 'enable-openid-connect: true' in the workflow; jobs of forks get no tokens"
	case ci.GitLab:
		return fmt.Sprintf("add to the job: id_tokens: {%s: {aud: %s}}", Variable, audience)
	case ci.Gitea:
		return "Gitea Actions has no such tokens: sign with a key"
	case "":
		return "not in a CI job: sign with a key"
	}
	return fmt.Sprintf("set %s to a token for the audience %s, or sign with a key", Variable, audience)
}

// isSafe reports whether a secret can be sent to a URL without others on the network reading it.
func isSafe(u *url.URL) bool {
	if u.Scheme == "https" {
		return u.Host != ""
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Scheme == "http" && (u.Hostname() == "localhost" || err == nil && ip.IsLoopback())
}

// Token returns a token for an audience. If the token is from a variable, its audience is what the
// job's definition says.
func (s *Source) Token(ctx context.Context, audience string) (string, error) {
	if s.token != "" {
		return s.token, nil
	}
	for n := 1; ; n++ {
		token, again, err := s.request(ctx, audience)
		if err == nil {
			return token, checkToken(token)
		}
		if !again || n == attempts {
			return "", fmt.Errorf("get an OpenID Connect token from %s: %w", s.name(), err)
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(s.pause):
		}
	}
}

func (s *Source) name() string {
	if name := s.provider.Name(); name != "" {
		return name
	}
	return s.url.Host
}

// request requests a token. again reports whether another attempt may succeed.
func (s *Source) request(ctx context.Context, audience string) (token string, again bool, err error) {
	u := *s.url
	u.RawQuery = strings.TrimPrefix(u.RawQuery+"&audience="+url.QueryEscape(audience), "&")
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return "", false, errors.New("the request is invalid")
	}
	r.Header.Set("Authorization", "Bearer "+s.secret)
	r.Header.Set("Accept", "application/json")
	resp, err := s.http.Do(r)
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // e repeats the URL
	}
	if err != nil {
		return "", true, err
	}
	defer resp.Body.Close()

	if resp.StatusCode != http.StatusOK {
		return "", resp.StatusCode >= 500, fmt.Errorf("it answered %s (%s)", resp.Status, fix(s.provider, audience))
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse+1))
	if err != nil {
		return "", true, fmt.Errorf("read its answer: %w", err)
	}
	var answer struct {
		Value string `json:"value"`
	}
	if len(body) > maxResponse || ledger.DecodeOpen(body, &answer) != nil || answer.Value == "" {
		return "", false, errors.New("its answer has no token")
	}
	return answer.Value, false, nil
}

// checkToken returns an error unless a text has the form of a token: other secrets must not be
// sent.
func checkToken(token string) error {
	if len(token) > maxToken || strings.Count(token, ".") != 2 || strings.ContainsAny(token, " \t\r\n") {
		return errors.New("the OpenID Connect token of the job is not a JSON Web Token of at most 16 KiB")
	}
	return nil
}
