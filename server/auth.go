package server

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"github.com/ledgerd/ledgerd/internal/rate"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/server/internal/live"
	"github.com/ledgerd/ledgerd/server/internal/tokenexchange"
	"github.com/ledgerd/ledgerd/store"
)

// A caller makes requests. It is a token or the host's administrator.
type caller struct {
	token      ledger.Token
	credential credential // zero for the host's administrator
}

// An identify function returns the caller of a request, or an error with
// CodeUnauthenticated.
type identify func(*http.Request) (caller, error)

// byHost identifies every caller as the host's administrator.
func byHost(*http.Request) (caller, error) {
	return caller{token: ledger.Token{Name: "host", Scope: ledger.Host}}, nil
}

// byToken identifies the caller by the token in the Authorization header.
func (s *Server) byToken(r *http.Request) (caller, error) {
	secret, err := bearer(r)
	if err != nil {
		return caller{}, err
	}
	return s.bySecret(r.Context(), secret, clientVersion(r))
}

// clientVersion returns the version of ledgerd that sends a request, or an empty text if another
// program does, or a build without a version.
func clientVersion(r *http.Request) string {
	const longest = 100
	version, ok := strings.CutPrefix(r.UserAgent(), "ledgerd/")
	if !ok || len(version) > longest || !semver.IsValid(version) {
		return ""
	}
	return version
}

// bySecret identifies the caller by a token's secret. client is as in [store.Store.TouchToken].
func (s *Server) bySecret(ctx context.Context, secret, client string) (caller, error) {
	hash, err := ledger.ParseSecret(secret)
	if err != nil {
		return caller{}, err
	}
	return s.byCredential(ctx, credential{hash: hash}, client)
}

// byCredential identifies the caller by a credential.
func (s *Server) byCredential(ctx context.Context, c credential, client string) (caller, error) {
	token, err := s.tokenOf(ctx, c)
	if err != nil {
		return caller{}, err
	}
	switch now := s.time(); {
	case token.RevokedAt != 0:
		return caller{}, ledger.Errorf(ledger.CodeUnauthenticated, "the API token was revoked at %s", token.RevokedAt)
	case token.ExpiresAt != 0 && token.ExpiresAt <= now:
		return caller{}, ledger.Errorf(ledger.CodeUnauthenticated, "the API token expired at %s", token.ExpiresAt)
	}
	s.store.TouchToken(token.ID, client)
	return caller{token, c}, nil
}

// tokenOf returns the token of a credential, which may be revoked or expired.
func (s *Server) tokenOf(ctx context.Context, c credential) (ledger.Token, error) {
	if c.session {
		return s.tokenOfSession(ctx, c.hash)
	}
	token, err := s.store.TokenByHash(ctx, c.hash)
	if isNotFound(err) {
		return token, ledger.Errorf(ledger.CodeUnauthenticated, "unknown API token")
	}
	if err != nil {
		return token, fmt.Errorf("look up the token: %w", err)
	}
	return token, nil
}

// tokenOfSession returns the token of a session that has not ended.
func (s *Server) tokenOfSession(ctx context.Context, hash [32]byte) (ledger.Token, error) {
	token, expires, err := s.store.SessionToken(ctx, hash)
	switch {
	case isNotFound(err), err == nil && expires <= s.time():
		return token, ledger.Errorf(ledger.CodeUnauthenticated, "the session has ended: sign in again")
	case err != nil:
		return token, fmt.Errorf("look up the session: %w", err)
	}
	return token, nil
}

// recheck returns an error if the caller would not be accepted any more. It continues when
// ctx is done, because the result may serve other streams.
func (s *Server) recheck(ctx context.Context, c caller) error {
	if c.isHost() {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	return s.rechecks.of(c.credential, func() error {
		return live.OnOwnStack(func() error {
			_, err := s.byCredential(ctx, c.credential, "")
			return err
		})
	})
}

func isNotFound(err error) bool { return isCode(err, ledger.CodeNotFound) }

func isCode(err error, code ledger.Code) bool {
	e, ok := errors.AsType[*ledger.Error](err)
	return ok && e.Code == code
}

func bearer(r *http.Request) (string, error) {
	values := r.Header["Authorization"]
	if len(values) != 1 {
		return "", ledger.Errorf(
			ledger.CodeUnauthenticated, "API token required: send one header Authorization: Bearer <token>")
	}
	scheme, secret, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", ledger.Errorf(ledger.CodeUnauthenticated, "invalid Authorization header: use Bearer <token>")
	}
	return strings.TrimSpace(secret), nil
}

func (c caller) isHost() bool { return c.token.Scope == ledger.Host }

// name returns the caller's name as the ledger records it.
func (c caller) name() string {
	if c.isHost() {
		return c.token.Name
	}
	return fmt.Sprintf("%s (%s)", c.token.Name, c.token.ID)
}

// SessionLife is how long a session of the web interface lasts.
const SessionLife = 12 * time.Hour

// SignIn creates a session from a token's secret. It returns the secret of the session and the
// time at which it expires. The ledger stores only the hash of the secret.
func (s *Server) SignIn(ctx context.Context, token string) (session string, expires ledger.Time, err error) {
	c, err := s.bySecret(ctx, token, "")
	if err != nil {
		return "", 0, err
	}
	if c.token.IsExchanged() {
		return "", 0, ledger.Errorf(ledger.CodeUnauthenticated, "the API token is for a CI job: sign in with another token")
	}
	if c.token.IsLimited { // pages are shared by all sessions with the same scope
		return "", 0, ledger.Errorf(ledger.CodeUnauthenticated,
			"the API token is only for some repos, and the pages are about the whole org: sign in with another token")
	}
	ctx = store.WithActor(ctx, visitor(ctx, c.token))
	session = rand.Text() + rand.Text() // 260 random bits
	expires = s.time().Add(SessionLife)
	if err := s.store.CreateSession(ctx, c.token.ID, sha256.Sum256([]byte(session)), expires); err != nil {
		return "", 0, fmt.Errorf("create a session: %w", err)
	}
	return session, expires, nil
}

// SignInMember creates a session of a member, whose account a provider has confirmed. state is the
// SHA-256 of the state of the sign-in, which counts once. It returns the secret of the session and the
// time at which it expires. If the org does not admit the account, or does not exist, the error has
// CodeForbidden; see [store.Store.SignInMember].
func (s *Server) SignInMember(
	ctx context.Context, org string, account member.Account, state [sha256.Size]byte,
) (session string, expires ledger.Time, err error) {
	ctx = store.WithActor(ctx, visitor(ctx, ledger.Token{}))
	session = rand.Text() + rand.Text() // 260 random bits
	expires = s.time().Add(SessionLife)
	if _, err := s.store.SignInMember(ctx, org, account, state, sha256.Sum256([]byte(session)), expires); err != nil {
		return "", 0, err
	}
	return session, expires, nil
}

// Offers returns the orgs that an account can sign in to.
func (s *Server) Offers(ctx context.Context, account member.Account) ([]member.Offer, error) {
	return s.store.Offers(ctx, account)
}

// SignOut deletes a session, and ends the sign-in of a member. It is a no-op if the session does not
// exist.
func (s *Server) SignOut(ctx context.Context, session string) error {
	hash := sha256.Sum256([]byte(session))
	token, _, err := s.store.SessionToken(ctx, hash)
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look up the session: %w", err)
	}
	ctx = store.WithActor(ctx, visitor(ctx, token))
	if token.IsSignIn {
		return s.store.EndSignIn(ctx, token.Org, "", token.ID)
	}
	if err := s.store.DeleteSession(ctx, hash); err != nil {
		return fmt.Errorf("delete a session: %w", err)
	}
	return nil
}

// sessionKey is the context key of a session's secret. No request from the network
// can set it.
type sessionKey struct{}

// WithSession returns a context in which Sessions identifies the caller by the
// session's secret.
func (s *Server) WithSession(ctx context.Context, session string) context.Context {
	return context.WithValue(ctx, sessionKey{}, session)
}

// digestKey is the context key of the commit of a digest.
type digestKey struct{}

// WithDigest returns a context in which a stream of Sessions is a digest: of the events
// that have happened since the last message, it sends only the latest one, and at most
// one message every half a second. If commit is not empty, events that do not mention
// it are left out, except policy events.
func (s *Server) WithDigest(ctx context.Context, commit string) context.Context {
	return context.WithValue(ctx, digestKey{}, commit)
}

// bySession identifies the caller by the session in the request's context.
func (s *Server) bySession(r *http.Request) (caller, error) {
	session, ok := r.Context().Value(sessionKey{}).(string)
	if !ok {
		return caller{}, ledger.Errorf(ledger.CodeUnauthenticated, "sign in with an API token")
	}
	return s.byCredential(r.Context(), credential{sha256.Sum256([]byte(session)), true}, "")
}

// clientKey is the context key of the address of a visitor of the web interface. No request from
// the network can set it.
type clientKey struct{}

// WithClient returns a context in which requests of Sessions and Host, SignIn and SignOut are
// those of a visitor of the web interface with a remote address, as in [http.Request].
func (s *Server) WithClient(ctx context.Context, remote string) context.Context {
	return context.WithValue(ctx, clientKey{}, remote)
}

// visitor returns the visitor of the web interface who is signed in with a token.
func visitor(ctx context.Context, t ledger.Token) ledger.Actor {
	remote, _ := ctx.Value(clientKey{}).(string)
	return ledger.Actor{Name: t.Name, Token: t.ID, Via: ledger.ViaWeb, Address: addressOf(remote)}
}

// addressOf returns the IP address of a remote address; empty if it has none, as on a Unix socket.
func addressOf(remote string) string {
	address, err := netip.ParseAddrPort(remote)
	if err != nil {
		return ""
	}
	return address.Addr().Unmap().String()
}

// mayRead returns an error if the caller's scope does not allow to read events of the types.
func (c caller) mayRead(types ...ledger.EventType) error {
	for _, t := range types {
		if t.Scope() > c.token.Scope {
			return ledger.Errorf(ledger.CodeForbidden, "scope %s required to read events of type %s: the API token has scope %s",
				t.Scope(), t, c.token.Scope)
		}
	}
	return nil
}

// CountFailure counts a request from an address whose token was not accepted, and returns the error
// for it, which is the given one within the limit. Beyond it, it sets a header of the response.
// Tokens that are accepted are not affected: they cannot be guessed, and other callers may share
// the address.
func (s *Server) CountFailure(response http.Header, remote string, err error) error {
	if s.rates.failures == nil || !tokenexchange.IsRefusal(err) && !isCode(err, ledger.CodeUnauthenticated) {
		return err
	}
	q := s.rates.failures.Take(rate.Client(remote), time.Now())
	if q.Allowed {
		return err
	}
	response.Set("Retry-After", strconv.Itoa(rate.Seconds(q.Next)))
	return ledger.Errorf(ledger.CodeTooManyRequests, "too many requests from this address with tokens that are not "+
		"accepted (check the token, and try again in %d seconds)", rate.Seconds(q.Next))
}
