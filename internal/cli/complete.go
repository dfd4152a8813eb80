package cli

import (
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// The limits of a completion: a shell that waits longer annoys.
const (
	maxCompletion   = time.Second
	maxCompletions  = 100
	completionUsage = cobra.ShellCompDirectiveNoFileComp
)

// AddCompletion has the shell complete the arguments and flags of a command and its
// subcommands: orgs, repos, predicates and IDs. The names of the arguments are those in its
// usage. If the ledger cannot be asked, or not in time, nothing is completed.
func (p *Program) AddCompletion(command *cobra.Command) {
	names := argumentsOf(command.Use)
	if command.ValidArgsFunction == nil && command.Runnable() && len(names) > 0 {
		command.ValidArgsFunction = func(
			command *cobra.Command, args []string, _ string,
		) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) >= len(names) {
				return nil, completionUsage
			}
			return p.complete(command, names[len(args)], args), completionUsage
		}
	}

	command.LocalFlags().VisitAll(func(flag *pflag.Flag) { p.completeFlag(command, flag.Name) })
	for _, child := range command.Commands() {
		p.AddCompletion(child)
	}
}

// argumentsOf returns the names of the arguments in the usage of a command, without brackets.
func argumentsOf(usage string) (names []string) {
	for _, word := range strings.Fields(usage)[1:] {
		if word == "--" {
			break
		}
		switch name := strings.Trim(word, "[]"); {
		case word == "ORG[/REPO]":
			names = append(names, "ORG/REPO")
		case name != "" && name == strings.ToUpper(name):
			names = append(names, name)
		}
	}
	return names
}

// completeFlag has the shell complete a flag whose values the ledger knows.
func (p *Program) completeFlag(command *cobra.Command, name string) {
	what, ok := map[string]string{
		"org": "ORG", "predicate": "PREDICATE", "commit": "REV", "identity": "DN", "target": "REV", "branch": "REV",
		"repo": "REPO", "environment": "ENVIRONMENT",
	}[name]
	if _, has := command.GetFlagCompletionFunc(name); has || !ok {
		return
	}
	complete := func(command *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return p.complete(command, what, args), completionUsage
	}
	_ = command.RegisterFlagCompletionFunc(name, complete)
}

// complete returns the values of an argument or flag.
func (p *Program) complete(command *cobra.Command, what string, args []string) (list []cobra.Completion) {
	parent := command.Context()
	if parent == nil {
		parent = context.Background()
	}
	ctx, cancel := context.WithTimeout(parent, maxCompletion)
	defer cancel()
	command.SetContext(ctx)
	p.Global.Quiet = true // no notes

	l, err := p.Locate(command)
	if err != nil || !l.IsReady() {
		return nil
	}
	_ = l.Use(ctx, func(ctx context.Context, c *Connection) error {
		list = candidates(ctx, c, command, what, args)
		return nil
	})
	return list
}

// candidates returns the values of an argument or flag that the ledger knows.
func candidates(
	ctx context.Context, c *Connection, command *cobra.Command, what string, args []string,
) []cobra.Completion {
	switch what {
	case "ORG":
		return orgs(ctx, c)
	case "ORG/REPO":
		return reposOf(ctx, c, orgs(ctx, c))
	case "REPO":
		return reposFor(ctx, c, command, args)
	case "ENVIRONMENT":
		return named(c.Environments(ctx, orgOf(ctx, c, command, args), client.EnvironmentFilter{}),
			func(e ledger.Environment) string { return e.Name })
	case "PREDICATE":
		return named(c.Predicates(ctx, orgOf(ctx, c, command, args)),
			func(n ledger.PredicateCount) string { return n.Predicate })
	case "DN":
		return named(c.Identities(ctx, orgOf(ctx, c, command, args)), func(i identity.Identity) string { return i.DN })
	case "WEBHOOK", "DELIVERY":
		return ofRepo(ctx, c, what, args)
	case "ID":
		return ids(ctx, c, command, args)
	}
	return nil
}

// orgs returns the orgs, as far as the caller may see them.
func orgs(ctx context.Context, c *Connection) []cobra.Completion {
	if c.Local == nil {
		if own, err := c.OwnToken(ctx); err == nil && own.Org != "" {
			return []cobra.Completion{own.Org}
		}
	}
	return named(c.Orgs(ctx), func(o ledger.Org) string { return o.Name })
}

// reposOf returns the repos of orgs, as ORG/REPO.
func reposOf(ctx context.Context, c *Connection, orgs []cobra.Completion) (list []cobra.Completion) {
	for _, org := range orgs {
		list = append(list, named(c.Repos(ctx, org), func(r ledger.Repo) string { return r.Org + "/" + r.Name })...)
		if len(list) >= maxCompletions {
			break
		}
	}
	return list
}

// reposFor returns the values of --repo: names of repos if the command is about an org, else
// ORG/REPO.
func reposFor(ctx context.Context, c *Connection, command *cobra.Command, args []string) []cobra.Completion {
	if names := argumentsOf(command.Use); len(names) == 0 || names[0] != "ORG" {
		return reposOf(ctx, c, orgs(ctx, c))
	}
	return named(c.Repos(ctx, orgOf(ctx, c, command, args)), func(r ledger.Repo) string { return r.Name })
}

// orgOf returns the org that a command is about: that of --org, of the first argument, or the
// only one.
func orgOf(ctx context.Context, c *Connection, command *cobra.Command, args []string) string {
	if flag := command.Flags().Lookup("org"); flag != nil && flag.Value.String() != "" {
		return flag.Value.String()
	}
	if len(args) > 0 {
		org, _, _ := strings.Cut(args[0], "/")
		if ledger.CheckOrg(org) == nil && strings.HasPrefix(argumentsOf(command.Use)[0], "ORG") {
			return org
		}
	}
	if all := orgs(ctx, c); len(all) == 1 {
		return all[0]
	}
	return ""
}

// ids returns the IDs of what the group of a command manages.
func ids(ctx context.Context, c *Connection, command *cobra.Command, args []string) []cobra.Completion {
	org := orgOf(ctx, c, command, args)
	switch command.Parent().Name() {
	case "identity":
		return named(c.Identities(ctx, org), func(i identity.Identity) string { return describe(i.ID, i.DN) })
	case "token":
		active := func(t ledger.Token) string {
			if t.RevokedAt != 0 {
				return ""
			}
			return describe(t.ID, t.Name)
		}
		return named(c.Tokens(ctx, org), active)
	}
	return ofRepo(ctx, c, "ATTESTATION", args)
}

// ofRepo returns the IDs of what belongs to the repo that is the first argument.
func ofRepo(ctx context.Context, c *Connection, what string, args []string) []cobra.Completion {
	if len(args) == 0 {
		return nil
	}
	name, err := ParseRepoName(args[0])
	switch {
	case err != nil:
		return nil
	case what == "WEBHOOK":
		return named(c.Webhooks(ctx, name.Org, name.Repo), func(w ledger.Webhook) string { return describe(w.ID, w.URL) })
	case what == "DELIVERY" && len(args) > 1:
		return named(c.Deliveries(ctx, name.Org, name.Repo, args[1], client.DeliveryFilter{}),
			func(d ledger.Delivery) string { return describe(d.ID, string(d.Status)+" "+string(d.Type)) })
	case what == "ATTESTATION":
		return named(c.Attestations(ctx, name.Org, name.Repo, client.AttestationFilter{}),
			func(a ledger.AttestationRecord) string {
				return describe(a.ID, a.Predicate+" "+string(a.Result.Status)+" on "+terminal.Short(a.Commit))
			})
	}
	return nil
}

// describe returns an ID with a description, in the form that the shell understands.
func describe(id, description string) string { return id + "\t" + terminal.Clean(description) }

// named returns the values of the first records, without empty ones and repetitions. Errors end
// the list.
func named[T any](records iter.Seq2[T, error], value func(T) string) (list []cobra.Completion) {
	n := 0
	for record, err := range records {
		if n++; err != nil || n > maxCompletions {
			break
		}
		if v := value(record); v != "" && !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list
}
