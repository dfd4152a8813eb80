// Package mergeclaim checks with git that a commit is a clean merge, and writes the
// statement that claims it.
package mergeclaim

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/internal/buildinfo"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

// A Request asks for a claim that a commit merges another one. It holds the flags of a
// command.
type Request struct{ mergeOf, squashOf string }

// Flags defines the flags. The command must have the others that they exclude.
func (q *Request) Flags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&q.mergeOf, "merge-of", "", "claim that the commit is a clean merge of its first parent and this git "+
		"`rev`, its second parent")
	flags.StringVar(&q.squashOf, "squash-of", "", "claim that the commit is a clean merge of its only parent and "+
		"this git `rev`")
	flagvalue.Exclude(command, "merge-of", "squash-of", "status", "statement", "envelope")
	flagvalue.Exclude(command, "merge-of", "squash-of", "predicate")
	flagvalue.Exclude(command, "merge-of", "squash-of", "annotation")
}

// IsSet reports whether a claim is asked for.
func (q *Request) IsSet() bool { return q.mergeOf != "" || q.squashOf != "" }

// Check returns an error if other arguments of the command do not go with a claim.
func (q *Request) Check(hasKey bool, command []string) error {
	switch {
	case len(command) > 0:
		return errors.New("a command and --merge-of or --squash-of are mutually exclusive")
	case !hasKey:
		return errors.New("--key or --ci is required")
	}
	return nil
}

// Statement checks with git, in the current folder, that a commit is the clean merge that
// was asked for, and returns the statement that says so, and its predicate.
func (q *Request) Statement(ctx context.Context, repo, commit string) (statement []byte, predicate string, err error) {
	started := ledger.TimeOf(time.Now())
	kind, source := attestation.Merged, q.mergeOf
	if q.squashOf != "" {
		kind, source = attestation.Squashed, q.squashOf
	}
	m, err := gitrepo.Repo{Dir: "."}.CheckMerge(ctx, gitrepo.Merge{Kind: kind, Commit: commit, Source: source})
	if err != nil {
		return nil, "", err
	}
	statement, err = Statement(repo, m, started)
	return statement, attestation.MergePredicate(kind), err
}

// Statement returns the statement that claims a merge, which was checked from the given time on.
func Statement(repo string, m gitrepo.Merge, started ledger.Time) ([]byte, error) {
	return attestation.NewMergeStatement(m.Commit, attestation.Merge{
		Repo: repo, Kind: m.Kind, Tree: m.Tree,
		Source: attestation.MergedCommit{SHA: m.Source}, Parent: attestation.MergedCommit{SHA: m.Parent},
		Tools:     map[string]string{"git": m.Git, "ledgerd": buildinfo.Version()},
		StartedOn: started, FinishedOn: ledger.TimeOf(time.Now()),
	})
}

// Commits returns the commits to register before an envelope is recorded: the given one, if
// it is not empty, and those that a claim in the envelope is about, which must be proven.
func Commits(envelope []byte, commit string) []string {
	var list []string
	if commit != "" {
		list = append(list, commit)
	}
	for _, sha := range attestation.MergedCommits(envelope) {
		if !slices.Contains(list, sha) {
			list = append(list, sha)
		}
	}
	return list
}
