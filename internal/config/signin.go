package config

import (
	"errors"

	"github.com/ledgerd/ledgerd/internal/idp"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/ledger/passkey"
)

// SignIn holds the settings of how people sign in, in addition to API tokens.
type SignIn struct {
	// Providers is the file with the OpenID Connect providers; see [SignIn.LoadProviders].
	Providers string `mapstructure:"providers" yaml:"providers"`
	// RPID is the domain that passkeys are for; empty for no passkeys.
	RPID string `mapstructure:"rp_id" yaml:"rp_id"`
}

// Party returns the server as passkeys know it, without an ID if there are no passkeys. base is the
// setting base_url.
func (s SignIn) Party(base BaseURL) (passkey.Party, error) {
	switch {
	case s.RPID == "":
		return passkey.Party{}, nil
	case base == "":
		return passkey.Party{}, errors.New("base_url is not set, which says where the pages are that use passkeys")
	}
	return passkey.NewParty(s.RPID, string(base))
}

// LoadProviders reads the file with the providers with which people sign in. Without a file there are
// none. base is the setting base_url. Others must not have access to the file, which has secrets.
func (s SignIn) LoadProviders(base BaseURL) ([]idp.Config, error) {
	if s.Providers == "" {
		return nil, nil
	}
	switch {
	case base == "":
		return nil, errors.New("base_url is not set, to which the providers of sign_in.providers answer")
	case member.CheckIssuer(string(base)) != nil:
		return nil, errors.New("base_url does not begin with https://, as the providers of sign_in.providers need it " +
			"(only this machine may have http)")
	}
	return loadPrivate("sign_in.providers", s.Providers, idp.Read)
}
