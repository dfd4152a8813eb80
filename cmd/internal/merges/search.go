package merges

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

// limits are those of one search.
type limits struct {
	commits   int           // of the mainline, and of one queue
	lookback  int           // commits of the mainline that are searched although the one before them has claims
	older     int           // commits of the mainline that a branch may be behind
	heads     int           // of branches
	branch    int           // commits of one branch
	tries     int           // sources that are checked for one commit
	claims    int           // of one commit; the ledger takes 16, some of them by others
	checks    int           // of all commits
	undecided int           // commits, or groups of them, that are reported
	checkTime time.Duration // of one check
}

func defaultLimits() limits {
	return limits{commits: 200, lookback: 20, older: 20_000, heads: 500, branch: 500, tries: 16, claims: 12, checks: 2000,
		undecided: 50, checkTime: 30 * time.Second}
}

// A Head is a commit that a branch has or had.
type Head struct {
	Branch   string // "" if it is not known
	SHA      string
	Evidence Evidence
}

// Evidence is what the ledger has about a commit, and may carry.
type Evidence int

// The kinds of evidence, the one that matters most last.
const (
	NoEvidence Evidence = iota
	Attested
	Reviewed
)

// A Claim says that a commit is a clean merge of a commit of the mainline, the parent, and another commit, the source.
type Claim struct {
	Kind           attestation.MergeKind
	Source, Parent string
}

// A Query says where to search.
type Query struct {
	// Commit is the one of the mainline up to which merges are searched.
	Commit string
	// Mainline is the tip of the branch that the forge protects, and Branch its name.
	Mainline, Branch string
	// Before is the tip that the mainline had before, if that is known from the forge.
	Before string
	// Heads are commits that branches have or had, in addition to the refs of the clone, the latest of a branch first.
	Heads []Head
	// Claims returns the claims about a commit that are made already, and need not be made again. It may be nil.
	Claims func(ctx context.Context, commit string) ([]Claim, error)
}

// A Result has what a search has found.
type Result struct {
	// Claims are the merges that git has confirmed, oldest first.
	Claims []gitrepo.Merge
	// Ranges are the commits that were searched: of the mainline and of queues, with the commit before each, and then
	// the heads of the query that are not merged, with their merge bases. They are oldest first.
	Ranges []Range
	// Undecided has the commits, or groups of them, that could not be decided, and why. gitrepo.IsIncomplete reports
	// whether more history of the clone would help.
	Undecided []error
}

// A Range is a commit and all that leads to it and not to the base.
type Range struct{ Commit, Base string }

// A finder is a search.
type finder struct {
	*gitrepo.MergeChecker
	Result
	limits limits

	query     Query
	named     []Head            // of the query and the clone
	branches  []*branch         // with commits that the mainline lacks
	touchRead bool              // whether readTouched has run
	main      map[string]bool   // commits of the mainline, by first parents
	places    map[string]int    // of those about which claims may be missing, oldest first
	queued    map[string]bool   // commits of queues, which follow the mainline
	confirmed map[pair]bool     // what git or the ledger have confirmed
	refuted   map[claimKey]bool // what git has not
	claimed   map[string]int    // the number of claims by commit
	full      map[string]bool   // commits that have all the claims that they may have
	checks    int
	sources   map[string][]string
	renamed   map[string]string // old names of files by the new ones; nil until they are needed
}

func newFinder(checker *gitrepo.MergeChecker, q Query) *finder {
	f := &finder{MergeChecker: checker, limits: defaultLimits(), query: q,
		main: make(map[string]bool), places: make(map[string]int), queued: make(map[string]bool),
		confirmed: make(map[pair]bool), refuted: make(map[claimKey]bool), claimed: make(map[string]int),
		full: make(map[string]bool), sources: make(map[string][]string)}
	f.Timeout = f.limits.checkTime
	return f
}

// A pair is a commit and one of its sources: the ledger has one claim of a person about it.
type pair struct{ commit, source string }

// A claimKey identifies a claim in one search.
type claimKey struct {
	commit string
	Claim
}

// A commit is a commit of git, as git log prints it.
type commit struct {
	sha     string
	parents []string
	tree    string
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
	Head
	tree string
	// commits are those that the mainline lacks, the latest first.
	commits []commit
	base    string          // its merge base with the mainline, once touched is read
	singles int             // the number of commits that merge nothing
	patches map[string]bool // of these
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

// undecided notes what could not be decided.
func (f *finder) undecided(err error) {
	switch n := len(f.Undecided); {
	case n < f.limits.undecided:
		f.Undecided = append(f.Undecided, err)
	case n == f.limits.undecided:
		f.Undecided = append(f.Undecided, fmt.Errorf("more than %d commits were not decided", n))
	}
}

// settle notes an error that is about some commits only, so that the search goes on with others. It returns errors that
// end the search.
func (f *finder) settle(ctx context.Context, err error) error {
	if _, isOfLedger := errors.AsType[claimsError](err); isOfLedger || err == nil || ctx.Err() != nil {
		return err
	}
	f.undecided(f.Explain(ctx, err))
	return nil
}
