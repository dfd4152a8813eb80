package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
)

// A caller is who makes a request: a token, or the host's administrator.
type caller struct{ token ledger.Token }

// identify tells who makes a request.
type identify func(*http.Request) (caller, error)

// byHost takes every request for the host administrator's.
func byHost(*http.Request) (caller, error) {
	return caller{ledger.Token{Name: "host", Scope: ledger.Host}}, nil
}

// byToken finds the caller by the token in the Authorization header.
func (s *Server) byToken(r *http.Request) (caller, error) {
	secret, err := bearer(r)
	if err != nil {
		return caller{}, err
	}
	return s.bySecret(r.Context(), secret)
}

// bySecret finds the caller by the text of a token.
func (s *Server) bySecret(ctx context.Context, secret string) (caller, error) {
	hash, err := ledger.ParseSecret(secret)
	if err != nil {
		return caller{}, err
	}
	token, err := s.store.TokenByHash(ctx, hash)
	if isNotFound(err) {
		return caller{}, ledger.Errorf(ledger.CodeUnauthenticated, "this API token is not known here")
	}
	if err != nil {
		return caller{}, fmt.Errorf("look up the token: %w", err)
	}
	return s.letIn(token)
}

// letIn makes the token the caller, if it is good at this time.
func (s *Server) letIn(token ledger.Token) (caller, error) {
	switch now := s.time(); {
	case token.RevokedAt != 0:
		return caller{}, ledger.Errorf(ledger.CodeUnauthenticated, "this API token was revoked at %s", token.RevokedAt)
	case token.ExpiresAt != 0 && token.ExpiresAt <= now:
		return caller{}, ledger.Errorf(ledger.CodeUnauthenticated, "this API token expired at %s", token.ExpiresAt)
	}
	s.store.TouchToken(token.ID)
	return caller{token}, nil
}

func isNotFound(err error) bool {
	e, ok := errors.AsType[*ledger.Error](err)
	return ok && e.Code == ledger.CodeNotFound
}

func bearer(r *http.Request) (string, error) {
	values := r.Header["Authorization"]
	if len(values) != 1 {
		return "", ledger.Errorf(ledger.CodeUnauthenticated, "send one header Authorization: Bearer and an API token")
	}
	scheme, secret, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", ledger.Errorf(ledger.CodeUnauthenticated, "the Authorization header has to begin with Bearer")
	}
	return strings.TrimSpace(secret), nil
}

func (c caller) isHost() bool { return c.token.Scope == ledger.Host }

// name is what the ledger records of the caller.
func (c caller) name() string {
	if c.isHost() {
		return c.token.Name
	}
	return fmt.Sprintf("%s (%s)", c.token.Name, c.token.ID)
}
