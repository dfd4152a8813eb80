package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/workfile"
	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

// RepoVariable names the repo, as --repo does.
const RepoVariable = "LEDGERD_REPO"

// remoteSource is the source of a repo that the git remote names.
const remoteSource = "the git remote"

// A named is what names the repo of a command.
type named struct {
	repo   string // ORG/REPO or REPO; empty if nothing names it
	source string // a flag, a variable or a file; empty for an argument
	rest   []string
	isRev  bool // repo is an argument that is a git revision too
}

// whole returns the name if it has an org and cannot be a revision.
func (n named) whole() (RepoName, bool) {
	org, repo, ok := cutRepo(n.repo)
	return RepoName{org, repo}, ok && !n.isRev
}

// named returns what names the repo: the argument, else --repo, else LEDGERD_REPO, else
// .ledgerd.yaml.
func (p *Program) named(command *cobra.Command, args []string) (named, error) {
	repo, rest, err := p.splitArgs(command, args)
	if err != nil {
		return named{}, Usagef("%w", err)
	}
	if repo != "" {
		_, err := ParseRepoName(repo)
		isRev := len(rest) == 0 && slices.Contains(p.arguments[command], RevArg) &&
			gitrepo.Repo{Dir: "."}.Knows(command.Context(), repo)
		return named{repo: repo, rest: rest, isRev: isRev}, err
	}
	return p.namedByDefault(command.Context(), rest)
}

// namedByDefault returns what names the repo if no argument does.
func (p *Program) namedByDefault(ctx context.Context, rest []string) (named, error) {
	n := named{rest: rest}
	if n.repo, n.source = p.Global.Repo, "--repo"; n.repo == "" {
		n.repo, n.source = os.Getenv(RepoVariable), RepoVariable
	}
	if n.repo == "" {
		file, err := p.workFile(ctx)
		if err != nil {
			return n, err
		}
		n.repo, n.source = file.Repo, workfile.Name
	}
	if n.repo == "" || isRepoName(n.repo) || ledger.CheckRepo(n.repo) == nil {
		return n, nil
	}
	return n, Usagef("invalid repo %q in %s: use ORG/REPO or REPO, such as acme/api", n.repo, n.source)
}

// resolve returns the repo that n names, or else the one that the git remote names, and
// the arguments after ORG/REPO.
//
// An argument such as feature/login can be a repo and a branch. It is the repo if the
// ledger has it, as if there were no default; otherwise it is REV.
func (p *Program) resolve(ctx context.Context, c *Connection, n named) (RepoName, []string, error) {
	if n.isRev {
		name, err := ParseRepoName(n.repo)
		if err != nil {
			return name, nil, err
		}
		if has, err := has(ctx, c, name); has || err != nil {
			return name, n.rest, err
		}
		if n, err = p.namedByDefault(ctx, []string{n.repo}); err != nil {
			return name, nil, err
		}
	}

	p.repoSource = n.source
	switch name, ok := n.whole(); {
	case ok:
		return name, n.rest, nil
	case n.repo == "":
		p.repoSource = remoteSource
		name, err := p.remoteRepo(ctx, c)
		return name, n.rest, err
	}
	name, err := p.complete(ctx, c, n.repo)
	return name, n.rest, err
}

// has reports whether the ledger has a repo that the caller may read.
func has(ctx context.Context, c *Connection, name RepoName) (bool, error) {
	err := name.MustExist(ctx, c)
	if code := client.CodeOf(err); code == ledger.CodeNotFound || code == ledger.CodeForbidden {
		return false, nil
	}
	return err == nil, err
}

// remoteRepo returns the repo that the git remote names, if the ledger has it: by owner
// and name, or by the name in the default org.
func (p *Program) remoteRepo(ctx context.Context, c *Connection) (RepoName, error) {
	const how = "ORG/REPO is required: name it, set --repo or LEDGERD_REPO, or run 'ledgerd init' in the clone"
	git := gitrepo.Repo{Dir: "."}
	if _, err := git.Exists(ctx); err != nil {
		return RepoName{}, err
	}
	remote := gitrepo.ParseRemote(git.RemoteURL(ctx))
	if ledger.CheckRepo(remote.Name) != nil {
		return RepoName{}, Usagef(how)
	}

	var candidates []RepoName
	if owner := strings.ToLower(remote.Owner); ledger.CheckOrg(owner) == nil {
		candidates = append(candidates, RepoName{owner, remote.Name})
	}
	if org, err := p.defaultOrg(ctx, c); err == nil {
		candidates = append(candidates, RepoName{org, remote.Name})
	}
	for _, name := range candidates {
		found, err := has(ctx, c, name)
		if err != nil {
			return RepoName{}, err
		}
		if found {
			p.notef("using the repo %s, by the git remote origin", name)
			return name, nil
		}
	}
	return RepoName{}, Usagef("%s (the git remote origin is %s, which the ledger does not have)", how,
		terminal.Clean(strings.TrimPrefix(remote.Owner+"/"+remote.Name, "/")))
}

// defaultOrg returns the org of the token. On a database it is the org that LEDGERD_REPO
// or .ledgerd.yaml names, or else the only one.
func (p *Program) defaultOrg(ctx context.Context, c *Connection) (string, error) {
	if c.Local == nil {
		own, err := c.OwnToken(ctx)
		return own.Org, err
	}
	n, err := p.namedByDefault(ctx, nil)
	if err != nil {
		return "", err
	}
	if name, ok := n.whole(); ok {
		return name.Org, nil
	}

	orgs, err := client.Collect(c.Orgs(ctx), 2)
	if err != nil {
		return "", err
	}
	if len(orgs) == 1 {
		return orgs[0].Name, nil
	}
	if len(orgs) == 0 {
		return "", errors.New("the database has no org: run 'ledgerd org create' or 'ledgerd init'")
	}
	return "", Usagef("the database has several orgs: pass --org, ORG or ORG/REPO")
}

// complete returns the repo ORG/REPO, or REPO of the default org.
func (p *Program) complete(ctx context.Context, c *Connection, text string) (RepoName, error) {
	if isRepoName(text) || ledger.CheckRepo(text) != nil {
		return ParseRepoName(text)
	}
	org, err := p.defaultOrg(ctx, c)
	return RepoName{org, text}, err
}

// NameOfRepo returns what LEDGERD_REPO or .ledgerd.yaml says about the repo. Without
// either it is empty, and without an org only the repo is set.
func (p *Program) NameOfRepo(ctx context.Context) (RepoName, error) {
	n, err := p.namedByDefault(ctx, nil)
	if err != nil {
		return RepoName{}, err
	}
	if name, ok := n.whole(); ok {
		return name, nil
	}
	return RepoName{Repo: n.repo}, nil
}

// NoteRepo prints who names the repo, if the work tree does. A gate that guards a
// deployment should not get it from the commit that it checks.
func (p *Program) NoteRepo(name RepoName) {
	if p.repoSource == workfile.Name || p.repoSource == remoteSource {
		fmt.Fprintf(p.Hints(), "ledgerd: %s is named by %s; a deployment should name it itself, for example with %s\n", name,
			p.repoSource, RepoVariable)
	}
}

// DescribeRepo returns the repo that a command without ORG/REPO uses, as text: the name
// and what names it.
func (p *Program) DescribeRepo(ctx context.Context, c *Connection) (name RepoName, source string, err error) {
	n, err := p.namedByDefault(ctx, nil)
	if err != nil {
		return RepoName{}, "", err
	}
	name, _, err = p.resolve(ctx, c, n)
	return name, p.repoSource, err
}
