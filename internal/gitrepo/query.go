package gitrepo

// A Query names a commit of a git repository, and what the caller knows of it that
// the repository may not.
type Query struct {
	Rev string
	// Branch of the commit; empty for the one that it stands on.
	Branch string
	// Target is the branch that the commit is meant for, empty where nobody says.
	Target string
	// Base is a revision of the mainline that it left; empty for the usual one.
	Base string
	// DefaultBranch returns the branch that the ledger takes for the mainline; nil
	// for main.
	DefaultBranch func() (string, error)
}
