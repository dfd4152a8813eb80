package gitrepo

// A Query names a commit of a git repository, and adds what the repository may not
// contain.
type Query struct {
	Rev string
	// Branch is the branch of the commit. If empty, it is read from git.
	Branch string
	// Target is the branch that the commit is meant for. It may be empty.
	Target string
	// Base is a revision of the mainline that the commit branched from. If empty,
	// ReadCommit finds the mainline.
	Base string
	// DefaultBranch returns the repo's default branch in the ledger. If nil, it is
	// main.
	DefaultBranch func() (string, error)
}
