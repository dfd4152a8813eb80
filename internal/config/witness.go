package config

import (
	"errors"
	"fmt"
	"os"

	"github.com/ledgerd/ledgerd/ledger/proof/trustpolicy"
)

// LoadPolicy reads the file with the witnesses that cosign the logs. It returns nil if none
// is set.
func (l Log) LoadPolicy() (*trustpolicy.Policy, error) {
	if l.Policy == "" {
		return nil, nil
	}
	text, err := os.ReadFile(l.Policy)
	if err != nil {
		return nil, fmt.Errorf("read log.policy: %w", err)
	}
	policy, err := trustpolicy.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("invalid log.policy: %s: %w", l.Policy, err)
	}
	return policy, nil
}

// CheckFiles reads the files that settings name, and returns their errors.
func (s Settings) CheckFiles() error {
	_, policy := s.Log.LoadPolicy()
	_, keys := s.Webhooks.LoadSecretKeys()
	_, providers := s.SignIn.LoadProviders(s.BaseURL)
	return errors.Join(policy, keys, providers)
}
