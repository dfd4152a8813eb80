package doctor

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/ledgerd/ledgerd/internal/idp"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/store"
)

// providers examines which orgs may use the providers with which people sign in.
func (e *examination) providers(ctx context.Context) {
	configs, err := e.settings.SignIn.LoadProviders(e.settings.BaseURL)
	if err != nil || len(configs) == 0 {
		return // an error is a finding about the configuration
	}
	db, err := store.OpenSource(ctx, string(e.settings.Database))
	if err == nil {
		reader := store.NewReader(db, store.Options{})
		for _, c := range configs {
			err = errors.Join(err, e.provider(ctx, reader, c))
		}
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		e.add("sign-in", Problem, "%v", err)
	}
}

// provider examines which orgs may use a provider.
func (e *examination) provider(ctx context.Context, db *store.Store, c idp.Config) error {
	const check = "sign-in"
	if c.Orgs == nil {
		orgs, err := db.ListedOrgs(ctx, c.Issuer, maxListed)
		e.add(check, Warning, "the provider %s has no orgs in the file of sign_in.providers: only orgs that used it before "+
			"the upgrade may (%s)", c.Name, cmp.Or(strings.Join(orgs, ", "), "none"))
		return err
	}

	var unknown []string
	for _, org := range c.Orgs {
		if org == member.AnyOrg {
			continue
		}
		_, err := db.Org(ctx, org)
		if failure, ok := errors.AsType[*ledger.Error](err); ok && failure.Code == ledger.CodeNotFound {
			unknown = append(unknown, org)
			continue
		}
		if err != nil {
			return err
		}
	}
	if len(unknown) > 0 {
		e.add(check, Warning, "the provider %s names orgs that do not exist: %s (the file of sign_in.providers has the "+
			"present names of orgs)", c.Name, strings.Join(unknown[:min(len(unknown), maxListed)], ", "))
		return nil
	}
	e.add(check, OK, "the orgs that may use the provider %s exist", c.Name)
	return nil
}
