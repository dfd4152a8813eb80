package ledger

import (
	"slices"
)

// Limits of an overview.
const (
	// MaxOverviewCount is the number of commits of a repo that are examined for each count of
	// a RepoOverview. For Conflicts, it is MaxOverviewConflicts, because their overlaps are read.
	MaxOverviewCount     = 100
	MaxOverviewConflicts = 20
	// MaxOverviewSorted is the number of repos, by name, that an overview sorts.
	MaxOverviewSorted = 500
)

// A RepoOverview is a repo with what people want to know first.
type RepoOverview struct {
	Repo
	// Production is what runs in the environment prod or production, or else in the one that
	// changed last. It is nil if nothing is known to run.
	Production *RepoDeployment `json:"production,omitzero"`
	// Blocked counts the commits in flight that have evidence and wait for more before PROMOTABLE,
	// Failing those that need attention because a fail or error blocks a requirement, or because they
	// run and have lapsed, and Conflicts those that must rebase because of overlaps at HIGH. Only the
	// newest are counted: MaxOverviewCount of each kind, and MaxOverviewConflicts that overlap.
	Blocked   int `json:"blocked"`
	Failing   int `json:"failing"`
	Conflicts int `json:"conflicts"`
	// LastActivityAt is the time of the latest event, other than those of the radar.
	LastActivityAt Time `json:"last_activity_at,omitzero"`
}

// A RepoDeployment is the latest deployment of a repo to an environment that counts.
type RepoDeployment struct {
	Environment string `json:"environment"`
	Commit      string `json:"commit"`
	Branch      string `json:"branch"`
	Subject     string `json:"subject"` // first line of the commit's message
	DeployedAt  Time   `json:"deployed_at"`
}

// An OverviewSort says how an overview is sorted.
type OverviewSort string

// How an overview can be sorted. By name, a comes first; in any other way, the greatest
// number or the latest time.
const (
	SortByName       OverviewSort = "name"
	SortByProduction OverviewSort = "production" // when it was deployed
	SortByViolations OverviewSort = "violations"
	SortByBlocked    OverviewSort = "blocked"
	SortByFailing    OverviewSort = "failing"
	SortByConflicts  OverviewSort = "conflicts"
	SortByActivity   OverviewSort = "activity"
)

// OverviewSorts returns all ways to sort an overview.
func OverviewSorts() []OverviewSort {
	return []OverviewSort{
		SortByName, SortByProduction, SortByViolations, SortByBlocked, SortByFailing, SortByConflicts, SortByActivity,
	}
}

// ParseOverviewSort returns the sort with this name.
func ParseOverviewSort(name string) (OverviewSort, error) {
	if !slices.Contains(OverviewSorts(), OverviewSort(name)) {
		return "", Errorf(CodeInvalidParameter,
			"%q is not a sort (use name, production, violations, blocked, failing, conflicts or activity)", name)
	}
	return OverviewSort(name), nil
}

// An Overview is a page of repos.
type Overview struct {
	Data []RepoOverview `json:"data"`
	// Sorted is the number of repos that match and were sorted. If SortedMore is set, there are
	// others, which only a sort by name lists.
	Sorted     int    `json:"sorted"`
	SortedMore bool   `json:"sorted_more"`
	NextCursor string `json:"next_cursor,omitzero"`
}
