package merges

import (
	"context"

	"github.com/ledgerd/ledgerd/internal/gitrepo"
)

// The limits of one search.
const (
	maxCommits = 200 // of the mainline, and of one branch of a queue
	maxHeads   = 500
	maxTries   = 16 // sources that are checked for one commit
)

// A Head is a commit that a branch has or had.
type Head struct{ Branch, SHA string }

// A Query says where to search. The functions may be nil.
type Query struct {
	// Mainline is a commit of the branch that the forge protects.
	Mainline string
	// Tips are commits that the mainline is known to have had as its tip.
	Tips []string
	// Heads are commits that branches have or had, in addition to the refs of the clone, the latest of a branch first.
	Heads []Head
	// IsDone reports whether a search has handled a commit of the mainline, and with it those before.
	IsDone func(ctx context.Context, commit string) (bool, error)
	// IsClaimed reports whether the claim is made already.
	IsClaimed func(ctx context.Context, commit, source string) (bool, error)
}

// A Result has what a search has found.
type Result struct {
	// Claims are the merges that git has confirmed, oldest first.
	Claims []gitrepo.Merge
	// Undecided has the commits, or groups of them, that could not be decided, and why. gitrepo.IsIncomplete reports
	// whether more history of the clone would help.
	Undecided []error
}

// A finder is a search.
type finder struct {
	*gitrepo.MergeChecker
	Result

	query    Query
	named    []Head            // of the query and the clone
	branches []*branch         // with commits that the mainline lacks
	main     map[string]bool   // commits of the mainline, by first parents
	tried    map[claimKey]bool // whether git confirmed a claim
	sources  map[string][]string
	renamed  map[string]string // old names of files by the new ones; nil until they are needed
}

// A claimKey identifies a claim in one search.
type claimKey struct{ commit, source string }

// A commit is what git says about one.
type commit struct {
	sha     string
	parents []string
	// patch is what a rebase keeps of a commit: author, time and subject.
	patch string
}

// A step is a commit of the mainline or of a queue.
type step struct {
	commit
	parent string // the commit of the mainline before it, or "" for the first
	source string // the other parent, or "" if it has not two
}

// A branch is a commit that a branch has or had, which the mainline does not contain.
type branch struct {
	sha  string
	name string // "" if it is not known
	// commits are those that the mainline lacks, the latest first.
	commits []commit
	patches map[string]bool // of the commits
	touched touched         // what they change together
}

// touched has what a commit or branch changes: paths, and pairs of an old and a new blob for files that were renamed
// on the other side.
type touched map[string]bool

// A rebase is a branch whose commits were put on the mainline.
type rebase struct {
	onto   string // the commit of the mainline before them
	source string // the head of the branch
}

func (f *finder) undecided(err error) { f.Undecided = append(f.Undecided, err) }
