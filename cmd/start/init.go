package start

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/forge"
)

func newInit(p *cli.Program) *cobra.Command {
	var s setup
	command := &cobra.Command{
		Use:   "init",
		Short: "Set up this git repository: repo, keys, signers, CI token",
		Long: `Creates what is missing to use the ledger for this git work tree:
  - the org, on a database file, and the repo, named after the git remote
  - a key for CI and one for you, in .ledgerd/, and trust in both: in CI's for
    tests, builds and scans, in yours for reviews and deployments
  - a write token for CI, in .ledgerd/ci.token
  - .ledgerd.yaml, so that commands need no ORG/REPO here; commit this file
With --ci, it also writes a CI configuration that records tests; otherwise it
prints one. With --ci github or gitlab, it also creates a key for jobs of the
default branch: they claim merges, and may attest nothing else.

Nothing that exists is changed, so it can run again. What is in .ledgerd/ is
secret: git ignores the folder in this clone. Store the key and the token as
secrets of your CI. On a server, this needs a token with the scope admin; log in
with 'ledgerd login'.`,
		Example: `  ledgerd init
  ledgerd init --org acme --database ledger.db
  ledgerd init --repo acme/api --ci github --yes`,
		RunE: func(command *cobra.Command, _ []string) error {
			return initialize(p, command, &s)
		},
	}
	flags := command.Flags()
	flags.StringVar(&s.org, "org", "", "`org` (default: that of the token, the only one of the database, or the remote's)")
	flags.StringVar(&s.repo, "repo", "", "`repo`, as ORG/REPO or REPO (default: the remote's name)")
	flagvalue.ChoiceVar(command, flags, &s.ci, "ci", "", "write the configuration of this CI", "print", "github", "gitlab",
		"gitea", "forgejo")
	p.YesFlag(command)
	return command
}

func initialize(p *cli.Program, command *cobra.Command, s *setup) error {
	here := gitrepo.Repo{Dir: "."}
	if _, err := here.Exists(command.Context()); err != nil {
		return err
	}
	root := here.Root(command.Context())
	if root == "" {
		return errors.New("this is no git work tree: change to a clone, or run 'git init'")
	}
	s.p, s.git = p, gitrepo.Repo{Dir: filepath.FromSlash(root)}
	remote := s.git.RemoteURL(command.Context())
	s.remote, s.webURL = gitrepo.ParseRemote(remote), forge.OfRemote(remote)

	l, err := p.Locate(command)
	if err != nil {
		return err
	}
	if l.URL == "" && command.Flags().Changed("database") {
		s.databaseFlag = " --database " + terminal.QuoteShell(l.Settings.Database.String())
	}
	if s.server = l.URL; l.URL == "" {
		return l.UseNew(command.Context(), s.run)
	}
	return l.Use(command.Context(), s.run)
}

// run creates what is missing. It stops at the first error; the next run goes on there.
func (s *setup) run(ctx context.Context, c *cli.Connection) error {
	if err := s.choose(ctx, c); err != nil {
		return err
	}
	err := s.p.Ask(func() (string, error) {
		return fmt.Sprintf("Set up %s/%s for %s, with keys in %s?", s.org, s.repo, s.git.Dir, folder), nil
	})
	if err != nil {
		return err
	}
	for _, create := range []func(context.Context, *cli.Connection) error{
		s.createOrg, s.createRepo, s.createFolder, s.createSigners, s.createToken, s.createWorkFile, s.createCI,
	} {
		if err := create(ctx, c); err != nil {
			return err
		}
	}
	return s.report()
}

// choose chooses the org and the repo, and checks that the token is sufficient.
func (s *setup) choose(ctx context.Context, c *cli.Connection) error {
	if org, repo, ok := strings.Cut(s.repo, "/"); ok {
		if s.org != "" && s.org != org {
			return cli.Usagef("--repo is of the org %s, not of %s", org, s.org)
		}
		s.org, s.repo = org, repo
	}
	if c.Local == nil {
		own, err := c.OwnToken(ctx)
		if err != nil {
			return err
		}
		if own.Scope < ledger.Admin {
			return fmt.Errorf("init requires a token with the scope admin: %q has %s. Ask an admin of %s to run it, or log in "+
				"with another token", terminal.Clean(own.Name), own.Scope, own.Org)
		}
	}

	named, err := s.p.NameOfRepo(ctx)
	if err != nil {
		return err
	}
	if s.repo == "" {
		s.repo = named.Repo
	}
	if s.repo == "" {
		s.repo = s.remote.Name
	}
	if s.repo == "" {
		s.repo = filepath.Base(s.git.Dir)
	}
	if s.org == "" {
		s.org, err = s.chooseOrg(ctx, c, named.Org)
	}
	switch {
	case err != nil:
		return err
	case ledger.CheckOrg(s.org) != nil:
		return cli.Usagef("invalid --org %q: use 1 to 39 of a-z, 0-9 and -", s.org)
	case ledger.CheckRepo(s.repo) != nil:
		return cli.Usagef("invalid --repo %q: use REPO or ORG/REPO, such as acme/api", s.repo)
	}
	return nil
}

// chooseOrg returns the default org, or that of the remote for a database without orgs.
func (s *setup) chooseOrg(ctx context.Context, c *cli.Connection, named string) (string, error) {
	if c.Local == nil {
		own, err := c.OwnToken(ctx)
		return own.Org, err
	}
	if named != "" {
		return named, nil
	}

	orgs, err := client.Collect(c.Orgs(ctx), 2)
	owner := strings.ToLower(s.remote.Owner)
	switch {
	case err != nil:
		return "", err
	case len(orgs) == 1:
		return orgs[0].Name, nil
	case ledger.CheckOrg(owner) == nil:
		return owner, nil
	}
	return "", cli.Usagef("--org is required: neither the database nor the git remote names one, so choose one, " +
		"such as --org acme")
}

// report prints what was created, and what to do next.
func (s *setup) report() error {
	record := struct {
		Org   string `json:"org"`
		Repo  string `json:"repo"`
		Steps []step `json:"steps"`
	}{s.org, s.repo, s.steps}
	return s.p.Print(record, func() {
		t := terminal.NewTable(s.p.Stdout, "", "WHAT", "NAME", "NOTE")
		for _, step := range s.steps {
			status := "exists"
			if step.Created {
				status = "created"
			}
			t.Row(status, step.Kind, step.Name, step.Note)
		}
		t.Flush()

		terminal.Printf(s.p.Hints(), `
%[1]s is secret: do not commit or share it. Store %[1]s/ci.key and
%[1]s/ci.token as secrets of your CI. Commit .ledgerd.yaml.
`, folder)
		if s.claims() {
			terminal.Printf(s.p.Hints(), `
Store %[1]s/mainline.key as a secret that only jobs of the default branch can
read: docs/ci of ledgerd says how. Claims signed with it count if the policy has
carry: [merge].
`, folder)
		}
		terminal.Printf(s.p.Hints(), `
Then try:

  ledgerd commit register%[1]s
  ledgerd attest%[1]s --predicate test:unit --key %[2]s/ci.key -- COMMAND
  ledgerd gate%[1]s --state ATTESTED
`, s.databaseFlag, folder)
	})
}
