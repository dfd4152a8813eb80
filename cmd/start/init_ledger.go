package start

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// createOrg creates the org on a database file. On a server, the token has one.
func (s *setup) createOrg(ctx context.Context, c *cli.Connection) error {
	if c.Local == nil {
		return nil
	}
	_, err := c.CreateOrg(ctx, ledger.NewOrg{Name: s.org})
	exists := client.CodeOf(err) == ledger.CodeAlreadyExists
	if err != nil && !exists {
		return err
	}
	s.add("org", s.org, !exists, "")
	return nil
}

func (s *setup) createRepo(ctx context.Context, c *cli.Connection) error {
	n := ledger.NewRepo{Name: s.repo, DefaultBranch: s.git.DefaultBranch(ctx), WebURL: s.webURL}
	_, err := c.CreateRepo(ctx, s.org, n)
	exists := client.CodeOf(err) == ledger.CodeAlreadyExists
	if err != nil && !exists {
		return err
	}
	s.add("repo", s.org+"/"+s.repo, !exists, n.WebURL)
	return nil
}

// createSigners creates the keys, and has the org trust them.
func (s *setup) createSigners(ctx context.Context, c *cli.Connection) error {
	for _, k := range s.keys(ctx) {
		if err := s.createKey(ctx, k); err != nil {
			return err
		}
		pem, err := os.ReadFile(s.path(k.name + ".crt"))
		if err != nil {
			return err
		}

		n := identity.NewIdentity{Kind: identity.KeyIdentity, PEM: string(pem), May: k.may}
		added, err := c.AddIdentity(ctx, s.org, n)
		exists := client.CodeOf(err) == ledger.CodeAlreadyExists
		if err != nil && !exists {
			return err
		}
		name, note := added.DN, "may attest "+strings.Join(k.may, ", ")
		if exists {
			name, note = k.name+".crt", ""
		}
		s.add("signer", name, !exists, note)
	}
	return nil
}

// createToken creates the token for CI and writes it to a file.
func (s *setup) createToken(ctx context.Context, c *cli.Connection) error {
	const file = folder + "/ci.token"
	if _, err := os.Lstat(s.path(file)); err == nil {
		s.add("token", file, false, "")
		return nil
	}
	name := "ci " + s.repo[:min(len(s.repo), 90)] // names are limited
	for token, err := range c.Tokens(ctx, s.org) {
		if err != nil {
			return err
		}
		if token.Name == name && token.RevokedAt == 0 {
			s.add("token", token.ID, false, "its secret is not here: 'ledgerd token create' makes another")
			return nil
		}
	}

	token, err := c.CreateToken(ctx, s.org, ledger.NewToken{Name: name, Scope: ledger.Write})
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(s.git.Dir)
	if err == nil {
		err = errors.Join(writeNew(root, file, []byte(token.Secret+"\n"), 0o600), root.Close())
	}
	if err != nil {
		return errors.Join(err, c.RevokeToken(ctx, s.org, token.ID)) // nobody has it
	}
	s.add("token", file, true, "write, "+token.ID)
	return nil
}
