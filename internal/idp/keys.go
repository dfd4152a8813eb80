package idp

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/ledgerd/ledgerd/ledger/exchange"
)

// A keySet has the keys with which a provider signs ID tokens. Weak ones do not count. It is an
// [oidc.KeySet], and its methods are safe for concurrent use.
type keySet struct {
	http *http.Client
	url  string

	mu   sync.Mutex
	keys *exchange.Keys // nil: never read
}

// VerifySignature returns the payload of a token that a key of the provider has signed. It reads the keys
// again if those that it has do not verify the token: the provider may have new ones.
func (s *keySet) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	s.mu.Lock()
	keys := s.keys
	s.mu.Unlock()
	if keys != nil {
		if payload, err := keys.Verify(token); err == nil {
			return payload, nil
		}
	}

	keys, err := s.read(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the keys of the provider: %w", err)
	}
	return keys.Verify(token)
}

// read reads the keys, and keeps them.
func (s *keySet) read(ctx context.Context) (*exchange.Keys, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		return nil, err
	}
	response, err := s.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()

	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the status is %d", response.StatusCode)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	keys, err := exchange.ParseKeys(body)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = keys
	return keys, nil
}
