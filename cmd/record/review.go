package record

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attention"
	"github.com/ledgerd/ledgerd/ledger/review"
)

func newReview(p *cli.Program) *cobra.Command {
	return cli.Group("review", "List commits that wait for a review, and review them with a key",
		newReviewList(p),
		newReviewOf(p, review.Approve, p.Takes(&cobra.Command{
			Use:   "approve",
			Short: "Approve a commit, signed with a key",
			Long: `Signs and records that you approve a commit: a statement of the predicate
review:code with the result pass, and with --comment as an annotation. You sign
here, in the terminal, and depend on no script of the server; see docs/reviews.md
for approvals in the web interface. If the approval does not count, such as that
of the author, the reason is printed.

In a git work tree, the merge base of the commit and the branch that it is meant
for is signed, too: the commits between the two are what you have reviewed. They
are listed before you sign. If there is no such base, the review is about the
commit alone; see docs/evidence.md.

With --from, you review all commits since that one, also those that the branch
has already: this closes the gaps that 'ledgerd gate --env' lists.

With --cert the statement is sent with the certificate of the key, otherwise the
key must be an identity of the org. An SSH key, or a public key whose private
key is in ssh-agent, does as well.`,
			Example: `  ledgerd review approve acme/api --commit 5f2a1c9 --key ann.key
  ledgerd review approve --key ann.key
  ledgerd review approve acme/api --from v1.4.2 --commit 5f2a1c9 --key ann.key
  ledgerd review approve acme/api --commit 5f2a1c9 --key ~/.ssh/id_ed25519.pub
  ledgerd review approve acme/api --commit feature --key ann.key --cert ann.crt --comment 'Looks good'`,
		}, cli.RepoArg)),
		newReviewOf(p, review.RequestChanges, p.Takes(&cobra.Command{
			Use:   "reject",
			Short: "Request changes of a commit, signed with a key",
			Long: `Signs and records that a commit needs changes: a statement of the predicate
review:code with the result fail. The requirement stays unmet until you approve
the commit, even if others do. It works like 'ledgerd review approve'.`,
			Example: `  ledgerd review reject acme/api --commit 5f2a1c9 --key ann.key --comment 'The limit is off by one'`,
		}, cli.RepoArg)))
}

// newReviewOf completes a command that records a verdict. It does what attest does, with a status.
func newReviewOf(p *cli.Program, verdict review.Verdict, command *cobra.Command) *cobra.Command {
	a := attestRequest{status: verdict.Status()}
	var comment string
	command.RunE = func(command *cobra.Command, args []string) (err error) {
		switch {
		case !review.IsPredicate(a.predicate):
			return cli.Usagef("invalid --predicate %q: use a predicate of reviews, such as %s", a.predicate, review.Predicate)
		case !review.IsComment(comment):
			return cli.Usagef("invalid --comment: use at most %d characters, without invisible ones, and not only spaces",
				review.MaxComment)
		}
		for name, value := range review.Annotations(comment, "", "") {
			a.annotations = append(a.annotations, name+"="+value)
		}
		if err := a.check(); err != nil {
			return err
		}
		if a.repo, _, err = p.Repo(command, args); err != nil {
			return err
		}
		return attest(p, command, &a)
	}

	flags := command.Flags()
	flags.StringVar(&a.commit, "commit", "", "commit to review, a sha or a git `rev` (default HEAD)")
	flags.StringVar(&a.predicate, "predicate", review.Predicate, "`name` of the predicate, which begins with review:")
	flags.StringVar(&a.base, "base", "",
		"`rev` since which you review: its merge base with the commit is signed (default the branch that it is meant for)")
	flags.StringVar(&a.from, "from", "", "`rev` since which you review, an ancestor of the commit: it is signed as it is")
	a.signerFiles.flags(command)
	flags.StringVar(&comment, "comment", "", "`text` to sign with the verdict, at most 2000 characters")
	flagvalue.Require(command, "key")
	flagvalue.Exclude(command, "base", "from")
	flagvalue.RequireRev(command, "commit", "base", "from")
	return command
}

const (
	// maxWaitingPages is how many pages of what needs attention are read for a list of reviews.
	maxWaitingPages = 20
	// maxNamed is how many reviewers are named.
	maxNamed = 3
)

func newReviewList(p *cli.Program) *cobra.Command {
	limit := 0
	command := p.Takes(&cobra.Command{
		Use:   "list",
		Short: "List commits that wait for a review",
		Long: `Lists the commits that have reached ATTESTED, in the last 30 days, and lack a
review for PROMOTABLE, the latest first. Without ORG, the org is that of the
token or of the file .ledgerd.yaml.

WHO COULD names those whose approval would count and who have not reviewed:
keys, and the names that a CA certifies, of whom the policy may accept only
some. Those who wrote the commit are left out, and those whom the policy needs
for another requirement.`,
		Example: `  ledgerd review list acme
  ledgerd review list acme/api`,
		RunE: func(command *cobra.Command, args []string) error {
			return p.WithOrgOrRepo(command, args, func(ctx context.Context, c *cli.Connection, org, repo string) error {
				columns := []string{"COMMIT", "BRANCH", "SINCE", "SUBJECT", "WAITS FOR", "WHO COULD"}
				return cli.PrintList(p, waitingForReview(ctx, c.Client, org, repo), limit, columns, func(w unreviewed) []any {
					at := cli.RepoName{Org: org, Repo: w.Repo}.At(w.Commit)
					needs := fmt.Sprintf("%s (%d of %d)", w.Review.Predicate, w.Review.Have, w.Review.Need)
					return []any{at, terminal.OrDash(w.Branch), w.At, w.Subject, needs, w.named()}
				})
			})
		},
	}, cli.OrgOrRepoArg)
	cli.LimitFlag(command, &limit)
	return command
}

// An unreviewed is a commit that waits for a review.
type unreviewed struct {
	attention.Item `json:",embed"`
	// WhoCould has the DNs of keys whose approval would count, and the patterns of the names that roots
	// certify.
	WhoCould []string `json:"who_could"`
}

// named returns who could review, in a few words.
func (w unreviewed) named() string {
	names := slices.Clone(w.WhoCould[:min(len(w.WhoCould), maxNamed)])
	if more := len(w.WhoCould) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return terminal.OrDash(strings.Join(names, "; "))
}

// waitingForReview lists the commits of an org, or of one repo, that lack a review.
func waitingForReview(ctx context.Context, c *client.Client, org, repo string) iter.Seq2[unreviewed, error] {
	return func(yield func(unreviewed, error) bool) {
		who, err := readReviewers(ctx, c, org)
		if err != nil {
			yield(unreviewed{}, err)
			return
		}

		q := client.Query{}
		for range maxWaitingPages {
			list, err := c.AttentionPage(ctx, org, client.AttentionFilter{Kind: attention.Review, Repo: repo}, q)
			if err != nil {
				yield(unreviewed{}, err)
				return
			}
			for _, i := range list.Data {
				if i.Review == nil {
					continue
				}
				names, err := who.could(ctx, i)
				if client.CodeOf(err) == ledger.CodeNotFound { // it was deleted just now
					continue
				}
				if !yield(unreviewed{i, names}, err) || err != nil {
					return
				}
			}
			if q.Cursor = list.NextCursor; q.Cursor == "" {
				return
			}
		}
	}
}
