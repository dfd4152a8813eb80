package server

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"net/http"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

// SessionLife is how long a session of the web interface lasts.
const SessionLife = 12 * time.Hour

// SignIn creates a session from a token's secret. It returns the session's secret,
// of which the ledger stores only the hash, and when the session expires.
func (s *Server) SignIn(ctx context.Context, token string) (session string, expires ledger.Time, err error) {
	c, err := s.bySecret(ctx, token)
	if err != nil {
		return "", 0, err
	}
	session = rand.Text() + rand.Text() // 260 random bits
	expires = s.time().Add(SessionLife)
	if err := s.store.CreateSession(ctx, c.token.ID, sha256.Sum256([]byte(session)), expires); err != nil {
		return "", 0, fmt.Errorf("create a session: %w", err)
	}
	return session, expires, nil
}

// SignOut deletes a session. It is a no-op if the session does not exist.
func (s *Server) SignOut(ctx context.Context, session string) error {
	if err := s.store.DeleteSession(ctx, sha256.Sum256([]byte(session))); err != nil {
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
	return s.byCredential(r.Context(), credential{sha256.Sum256([]byte(session)), true})
}
