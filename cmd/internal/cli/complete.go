package cli

import (
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/exchange"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/ledger/outbound"
)

// The limits of a completion. Nobody waits longer for a shell.
const (
	maxCompletion  = time.Second
	maxCompletions = 100
)

// AddArguments has commands check their arguments, and the shell complete these and the flags: orgs,
// repos, predicates and IDs. If the ledger cannot be asked, or not in time, nothing is completed.
// It is for a command and its subcommands.
func (p *Program) AddArguments(command *cobra.Command) {
	names := p.arguments[command]
	if command.Args == nil && command.Runnable() {
		command.Args = p.CheckArgs
	}
	if len(names) > 0 {
		command.ValidArgsFunction = func(
			command *cobra.Command, args []string, _ string,
		) ([]cobra.Completion, cobra.ShellCompDirective) {
			return p.candidates(command, args, nextArguments(names, args)), cobra.ShellCompDirectiveNoFileComp
		}
	}
	p.completeFlags(command)
	for _, child := range command.Commands() {
		p.AddArguments(child)
	}
}

// nextArguments returns the names of what the next argument may be, without brackets.
func nextArguments(names, args []string) []string {
	given, many := len(args), 1
	if len(names) > 0 && names[0] == RepoArg {
		switch {
		case given == 0:
			many = 2
		case !isRepoName(args[0]):
			given++
		}
	}

	var next []string
	for _, name := range names[min(given, len(names)):min(given+many, len(names))] {
		next = append(next, strings.NewReplacer("[", "", "]", "").Replace(name))
	}
	return next
}

// completeFlags has the shell complete the flags whose values the ledger knows. It looks only
// at the command's own flags: every start of the program does this for every command.
func (p *Program) completeFlags(command *cobra.Command) {
	for _, flag := range [...]struct{ name, value string }{
		{"org", "ORG"}, {"repo", "REPO"}, {"predicate", "PREDICATE"}, {"environment", "ENVIRONMENT"}, {"identity", "DN"},
		{"commit", "REV"}, {"branch", "REV"}, {"target", "REV"},
	} {
		if command.Flags().Lookup(flag.name) == nil {
			continue
		}
		if _, has := command.GetFlagCompletionFunc(flag.name); has {
			continue
		}
		complete := func(command *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return p.candidates(command, args, []string{flag.value}), cobra.ShellCompDirectiveNoFileComp
		}
		_ = command.RegisterFlagCompletionFunc(flag.name, complete)
	}
}

// candidates returns the values of arguments or flags of the given names.
func (p *Program) candidates(command *cobra.Command, args, names []string) (list []cobra.Completion) {
	ctx := command.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, maxCompletion)
	defer cancel()
	command.SetContext(ctx)
	p.Global.Quiet = true // no notes

	l, err := p.Locate(command)
	if err != nil || !l.IsReady(ctx) {
		return nil
	}
	_ = l.Use(ctx, func(ctx context.Context, c *Connection) error {
		q := question{p, c, command, args}
		for _, name := range names {
			list = append(list, q.values(ctx, name)...)
		}
		return nil
	})
	return list
}

// A question asks the ledger for the values of an argument or flag.
type question struct {
	p       *Program
	c       *Connection
	command *cobra.Command
	args    []string // before the one to complete
}

// values returns the values that the ledger knows.
func (q question) values(ctx context.Context, name string) []cobra.Completion {
	switch name {
	case "ORG":
		return q.orgs(ctx)
	case "ORG/REPO":
		return q.repos(ctx)
	case "REPO":
		return q.reposForFlag(ctx)
	case "ENV", "ENVIRONMENT":
		return distinct(q.c.Environments(ctx, q.org(ctx), client.EnvironmentFilter{}),
			func(e ledger.Environment) string { return e.Name })
	case "PREDICATE":
		return distinct(q.c.Predicates(ctx, q.org(ctx)), func(n ledger.PredicateCount) string { return n.Predicate })
	case "DN":
		return distinct(q.c.Identities(ctx, q.org(ctx)), func(i identity.Identity) string { return i.DN })
	case "ID":
		return q.ids(ctx)
	case "WEBHOOK", "DELIVERY":
		return q.ofRepo(ctx, name)
	}
	return nil
}

// orgs returns the orgs, as far as the caller may see them.
func (q question) orgs(ctx context.Context) []cobra.Completion {
	if q.c.Local == nil {
		if own, err := q.c.OwnToken(ctx); err == nil && own.Org != "" {
			return []cobra.Completion{own.Org}
		}
	}
	return distinct(q.c.Orgs(ctx), func(o ledger.Org) string { return o.Name })
}

// repos returns the repos of the orgs, as ORG/REPO.
func (q question) repos(ctx context.Context) (list []cobra.Completion) {
	for _, org := range q.orgs(ctx) {
		list = append(list, distinct(q.c.Repos(ctx, org), func(r ledger.Repo) string { return r.Org + "/" + r.Name })...)
		if len(list) >= maxCompletions {
			break
		}
	}
	return list
}

// reposForFlag returns the values of --repo: names of repos if the command is about an org, or
// else ORG/REPO.
func (q question) reposForFlag(ctx context.Context) []cobra.Completion {
	if strings.Trim(q.first(), "[]") != "ORG" {
		return q.repos(ctx)
	}
	return distinct(q.c.Repos(ctx, q.org(ctx)), func(r ledger.Repo) string { return r.Name })
}

// first returns the name of the command's first argument; empty if it takes none.
func (q question) first() string {
	if names := q.p.arguments[q.command]; len(names) > 0 {
		return names[0]
	}
	return ""
}

// org returns the org that the command is about: that of --org, of the first argument, or the
// default.
func (q question) org(ctx context.Context) string {
	if flag := q.command.Flags().Lookup("org"); flag != nil && flag.Value.String() != "" {
		return flag.Value.String()
	}
	if len(q.args) > 0 && strings.Contains(q.first(), "ORG") {
		if org, _, _ := strings.Cut(q.args[0], "/"); ledger.CheckOrg(org) == nil {
			return org
		}
	}
	org, err := q.p.defaultOrg(ctx, q.c)
	if err != nil {
		return ""
	}
	return org
}

// ids returns the IDs of what the group of the command manages.
func (q question) ids(ctx context.Context) []cobra.Completion {
	switch q.command.Parent().Name() {
	case "identity":
		return distinct(q.c.Identities(ctx, q.org(ctx)), func(i identity.Identity) string { return withNote(i.ID, i.DN) })
	case "token":
		active := func(t ledger.Token) string {
			if t.RevokedAt != 0 {
				return ""
			}
			return withNote(t.ID, t.Name)
		}
		return distinct(q.c.Tokens(ctx, q.org(ctx)), active)

	case "member":
		return distinct(q.c.Members(ctx, q.org(ctx)), func(m member.Member) string { return withNote(m.ID, m.DN) })
	case "rule":
		return distinct(q.c.MemberRules(ctx, q.org(ctx)),
			func(r member.Rule) string { return withNote(r.ID, r.Claim+" "+r.Value) })
	case "sign-in":
		return distinct(q.c.SignIns(ctx, q.org(ctx), ""), func(t ledger.Token) string { return withNote(t.ID, t.DN) })
	case "issuer":
		return distinct(q.c.Issuers(ctx, q.org(ctx)), func(i exchange.Issuer) string { return withNote(i.ID, i.URL) })
	case "exchange-rule":
		return distinct(q.c.ExchangeRules(ctx, q.org(ctx)), func(r exchange.Rule) string { return withNote(r.ID, r.Name) })
	}
	return q.ofRepo(ctx, "ATTESTATION")
}

// ofRepo returns the IDs of what belongs to the repo of the command.
func (q question) ofRepo(ctx context.Context, what string) []cobra.Completion {
	name, rest, err := q.repo(ctx)
	if err != nil {
		return nil
	}
	switch {
	case what == "WEBHOOK":
		return distinct(q.c.Webhooks(ctx, name.Org, name.Repo),
			func(w outbound.Webhook) string { return withNote(w.ID, w.URL) })
	case what == "DELIVERY" && len(rest) > 0:
		return distinct(q.c.Deliveries(ctx, name.Org, name.Repo, rest[0], client.DeliveryFilter{}),
			func(d outbound.Delivery) string { return withNote(d.ID, string(d.Status)+" "+string(d.Type)) })
	case what == "ATTESTATION":
		return distinct(q.c.Attestations(ctx, name.Org, name.Repo, client.AttestationFilter{}),
			func(a ledger.AttestationRecord) string {
				return withNote(a.ID, a.Predicate+" "+string(a.Result.Status)+" on "+ledger.Short(a.Commit))
			})
	}
	return nil
}

// repo returns the repo of the command, by the arguments so far or by default, and the other
// arguments.
func (q question) repo(ctx context.Context) (name RepoName, rest []string, err error) {
	if len(q.args) > 0 && isRepoName(q.args[0]) {
		name, err = ParseRepoName(q.args[0])
		return name, q.args[1:], err
	}
	n, err := q.p.namedByDefault(ctx, q.args)
	if err != nil {
		return name, nil, err
	}
	return q.p.resolve(ctx, q.c, n)
}

// withNote returns an ID with a description, in the form that shells understand.
func withNote(id, description string) string { return id + "\t" + terminal.Clean(description) }

// distinct returns the values of the first records, without empty ones and repetitions. An
// error ends the list.
func distinct[T any](records iter.Seq2[T, error], value func(T) string) (list []cobra.Completion) {
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
