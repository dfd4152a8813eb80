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
	// From is a revision that the commit is built on: the commits since then are what a review is about. It takes
	// precedence over Base and Target.
	From string
	// BaseBranch is a branch of the remote that the commit branched from. If the clone has
	// it, it takes precedence over the mainline that ReadCommit finds.
	BaseBranch string
	// Fetch lets ReadCommit fetch what the clone lacks from its remote, which changes the
	// clone's refs of the remote and needs credentials.
	Fetch bool
	// DefaultBranch returns the repo's default branch in the ledger. If nil, it is
	// main.
	DefaultBranch func() (string, error)
}
