package e2e_test

import (
	"fmt"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// Sizes of the crowd.
const (
	crowdRepos   = 16 // in addition to those of the stage
	crowdCommits = 200
)

// pushCrowd adds many repos to the history, and to all repos many commits, from three days ago
// until now. Most commits are merged to main; every eighth is on a branch.
func (s *stage) pushCrowd() {
	repos := []string{"api", "billing", "handbook", "web"}
	for i := range crowdRepos {
		name := fmt.Sprintf("service-%02d", i+1)
		if i == 0 {
			name = "a-service-whose-name-is-as-long-as-the-names-of-repositories-that-many-teams-share-over-many-years"
		}
		repos = append(repos, name)
		s.pending = append(s.pending, step{s.now, func() {
			_, err := s.api.CreateRepo(s.t.Context(), "acme", ledger.NewRepo{Name: name})
			must.OK(s.t, err)
		}})
	}
	for r, repo := range repos {
		for n := range crowdCommits {
			s.pushOneOfCrowd(repo, r, n)
		}
	}
}

// pushOneOfCrowd adds the n-th commit of the r-th repo to the history.
func (s *stage) pushOneOfCrowd(repo string, r, n int) {
	const m = time.Minute
	subjects := []string{"Round amounts half to even", "Retry requests that time out", "Explain why an upload failed",
		"Drop the old importer and everything that only it has used, such as its tables, its worker and its settings",
		"Bump dependencies", "Cache the price list", "Fix a race when two orders are paid at once"}
	authors := []ledger.Author{by("Ada Moreno", "ada"), by("Jonas Weber", "jonas"), by("Mei Tanaka", "mei"),
		by("Bartholomew Featherstonehaugh-Cholmondeley", "bartholomew.featherstonehaugh-cholmondeley"),
		by("Priya Nair", "priya")}
	tested := act{4 * m, "ci", "test:go", ledger.Pass, time.Duration(60+n%90) * time.Second}
	if n%9 == 4 {
		tested.status = ledger.Fail
	}
	acts := []act{{2 * m, "ci", "lint:go", ledger.Pass, 9 * time.Second}, tested}
	if n%3 != 1 {
		acts = append(acts, act{40 * m, "rita", "review:code", ledger.Pass, 0},
			act{55 * m, "sam", "review:code", ledger.Pass, 0})
	}
	if n%6 == 0 {
		acts = append(acts, act{70 * m, "pilot", "deploy:prod", ledger.Pass, 3 * m})
	}
	if n%48 == 6 {
		acts = append(acts, act{95 * m, "pilot", "deploy:prod", ledger.Fail, 3 * m})
	}

	ago := 2*time.Hour + time.Duration(crowdCommits-n)*21*m + time.Duration(r)*m
	s.push(repo, ago, ledger.Registration{
		Branch: fmt.Sprintf("%s-%d-%d", []string{"fix", "feature/checkout", "spike"}[n%3], r, n),
		Author: authors[(n+r)%len(authors)], Message: subjects[(n+r)%len(subjects)],
		Changes: []radar.Change{edited(fmt.Sprintf("part-%d/file.go", n%40), 10+n%3, 3, 5)},
	}, acts...)
}
