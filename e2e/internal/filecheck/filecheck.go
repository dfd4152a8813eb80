// Package filecheck checks a database file after a fault: the answers that clients
// got, the invariants of the file, and that the states of commits follow from the evidence.
package filecheck

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
)

// Check returns what is wrong with a database that no process has open, given the notes
// of all its clients. It changes nothing: it checks copies of the files. now is the
// system clock of the ledger.
//
// One copy is checked with Python's SQLite, as the fault has left it. Another one is
// opened as a server does, which finishes what is pending, and is then checked again.
func Check(ctx context.Context, database string, notes []Note, now func() time.Time) (problems []string, err error) {
	dir, err := os.MkdirTemp("", "filecheck-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	first, second := filepath.Join(dir, "first.db"), filepath.Join(dir, "second.db")
	if err := errors.Join(copyDatabase(database, first), copyDatabase(database, second)); err != nil {
		return nil, err
	}

	r, err := run(ctx, task{first, notes, now().UnixMilli()})
	if err != nil || len(r.Problems) > 0 {
		return r.Problems, err
	}
	problems, err = derive(ctx, second, r.Pending, now)
	if err != nil {
		return append(problems, err.Error()), nil
	}

	if r, err = run(ctx, task{second, notes, now().UnixMilli()}); err != nil {
		return nil, err
	}
	for _, p := range r.Problems {
		problems = append(problems, "opened and settled: "+p)
	}
	if r.Pending {
		problems = append(problems, "opened and settled: there is still something pending")
	}
	return problems, nil
}

// copyDatabase copies a database and its write-ahead log, if there is one.
func copyDatabase(from, to string) error {
	if err := copyFile(from, to); err != nil {
		return err
	}
	err := copyFile(from+"-wal", to+"-wal")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func copyFile(from, to string) (err error) {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	_, err = io.Copy(target, source)
	return err
}

//go:embed check.py
var script string

type task struct {
	Database string `json:"database"`
	Notes    []Note `json:"notes"`
	Now      int64  `json:"now"` // Unix milliseconds
}

type report struct {
	Problems []string `json:"problems"`
	Pending  bool     `json:"pending"`
}

// run runs the script.
func run(ctx context.Context, t task) (r report, err error) {
	input, err := json.Marshal(t)
	if err != nil {
		return r, err
	}
	var stderr bytes.Buffer
	python := exec.CommandContext(ctx, "python3", "-c", script)
	python.Stdin, python.Stderr = bytes.NewReader(input), &stderr
	output, err := python.Output()
	if err != nil {
		return r, fmt.Errorf("check %s: %w\n%s", t.Database, err, stderr.String())
	}
	return r, json.Unmarshal(output, &r)
}

// derive derives the states of all commits again. If nothing is pending, they must be
// right before Settle. Commits in DEPLOYED stay there whatever the evidence is.
func derive(ctx context.Context, database string, pending bool, now func() time.Time) (problems []string, err error) {
	s, err := store.Open(ctx, database, store.Options{Now: now, NoCopy: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()

	if !pending {
		if problems, err = moves(ctx, s); err != nil {
			return nil, err
		}
	}
	if err := s.Settle(ctx); err != nil {
		return nil, fmt.Errorf("settle: %w", err)
	}
	after, err := moves(ctx, s)
	for _, p := range after {
		problems = append(problems, "settled: "+p)
	}
	return problems, err
}

// moves returns the commits whose evidence leads to another state than the one they have.
func moves(ctx context.Context, s *store.Store) (problems []string, err error) {
	orgs, err := s.Orgs(ctx, store.Query{Limit: 500})
	if err != nil {
		return nil, err
	}
	for _, org := range orgs.Data {
		repos, err := s.Repos(ctx, org.Name, store.Query{Limit: 500})
		if err != nil {
			return nil, err
		}
		for _, repo := range repos.Data {
			found, err := movesOf(ctx, s, repo)
			if err != nil {
				return nil, err
			}
			problems = append(problems, found...)
		}
	}
	return problems, nil
}

func movesOf(ctx context.Context, s *store.Store, repo ledger.Repo) (problems []string, err error) {
	active, err := s.Policy(ctx, repo.Org, repo.Name, 0)
	if err != nil {
		return nil, err
	}
	sim, err := s.Simulate(ctx, repo.Org, repo.Name, active.Contract)
	for _, m := range sim.Moves {
		problems = append(problems, fmt.Sprintf("%s/%s@%s is %s, but its evidence makes it %s",
			repo.Org, repo.Name, m.Commit, m.From, m.To))
	}
	return problems, err
}
