package gitrepo

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ledgerd/ledgerd/ledger/gitobject"
	"github.com/ledgerd/ledgerd/ledger/lineage"
)

// maxHistory limits a list of commits to the newest.
const maxHistory = 5000

// Ancestors returns the commits that say where a commit comes from: those that it has and the mainline has not, the
// other way round, and their merge bases, as far as the clone has them.
func (g Repo) Ancestors(ctx context.Context, commit string, q Query) (list []string, err error) {
	m, err := g.mainline(ctx, commit, q)
	if err != nil {
		return nil, err
	}
	o, err := g.objects(ctx)
	if err != nil {
		return nil, err
	}
	defer o.close()

	if m.trunk == "" {
		return o.history(ctx, commit)
	}
	return o.historyOf(ctx, [][]string{{commit, "^" + m.trunk}, {m.trunk, "^" + commit}})
}

// Since returns the commits that a commit has and its base has not, as many as a deployment may ship. It returns none
// if the folder is in no work tree, or the clone lacks one of the two.
func (g Repo) Since(ctx context.Context, base, commit string) (list []string, err error) {
	if exists, err := g.Exists(ctx); err != nil || !exists {
		return nil, err
	}
	for _, rev := range []string{base, commit} {
		if sha, err := g.commit(ctx, rev); err != nil || sha == "" {
			return nil, err
		}
	}
	out, err := g.Read(ctx, noGraph, noGraphValue, "rev-list", "--max-count="+strconv.Itoa(lineage.MaxShipped),
		commit, "^"+base)
	return strings.Fields(out), err
}

// historyOf returns the history of several ranges, each commit once.
func (o *objectStore) historyOf(ctx context.Context, ranges [][]string) (list []string, err error) {
	listed := make(map[string]bool)
	for _, args := range ranges {
		commits, err := o.history(ctx, args...)
		if err != nil {
			return nil, err
		}
		for _, sha := range commits {
			if !listed[sha] {
				listed[sha] = true
				list = append(list, sha)
			}
		}
	}
	return list, nil
}

// history returns the newest commits of a range, and those at its end.
func (o *objectStore) history(ctx context.Context, args ...string) (list []string, err error) {
	args = append([]string{"rev-list", "--boundary", "--max-count=" + strconv.Itoa(maxHistory)}, args...)
	out, err := o.Read(ctx, args...)
	for sha := range strings.FieldsSeq(out) {
		list = append(list, strings.TrimPrefix(sha, "-"))
	}
	return list, err
}

// MergedHistory returns the commits that say where the commit of a claim comes from: those that lead to the source and
// the parent from their merge bases, and to the commit. It lists each once, as far as the clone has them.
func (g Repo) MergedHistory(ctx context.Context, m Merge) (list []string, err error) {
	o, err := g.objects(ctx)
	if err != nil {
		return nil, err
	}
	defer o.close()
	return o.historyOf(ctx, [][]string{
		{m.Source, "^" + m.Parent}, {m.Parent, "^" + m.Source}, {m.Commit, "^" + m.Source, "^" + m.Parent},
	})
}

// CommitObjects returns the objects of commits, in the order of the list. It leaves out those that the clone lacks, and
// those that the ledger refuses, such as one without a valid author.
func (g Repo) CommitObjects(ctx context.Context, commits []string) (objects []lineage.Object, err error) {
	o, err := g.objects(ctx)
	if err != nil {
		return nil, err
	}
	defer o.close()
	sizes, err := o.sizes(ctx, "commit", commits)
	if err != nil {
		return nil, err
	}

	commits = slices.DeleteFunc(slices.Clone(commits), func(sha string) bool {
		size, ok := sizes[sha]
		return !ok || size > gitobject.MaxSize
	})
	command := o.command(ctx, "cat-file", "--batch", "--buffer")
	command.Stdin = strings.NewReader(strings.Join(commits, "\n") + "\n")
	var stdout bytes.Buffer
	command.Stdout = &stdout
	if err := command.Run(); err != nil {
		return nil, failure(command, "cat-file", err)
	}
	reader := bufio.NewReader(&stdout)
	for _, sha := range commits {
		object, err := readObject(reader, nil)
		if err != nil {
			return nil, fmt.Errorf("read commit objects: %w", err)
		}
		if _, err := gitobject.Parse(sha, object); err != nil {
			continue // for the ledger, it is an object that is not known
		}
		objects = append(objects, lineage.Object{Commit: sha, Object: object})
	}
	return objects, nil
}
