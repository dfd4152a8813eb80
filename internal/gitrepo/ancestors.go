package gitrepo

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ledgerd/ledgerd/ledger/lineage"
)

// maxHistory limits the commits between a commit and the mainline, of which the newest are listed.
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

	args := []string{"rev-list", "--boundary", "--max-count=" + strconv.Itoa(maxHistory), commit}
	if m.trunk != "" {
		args[len(args)-1] = commit + "..." + m.trunk
	}
	out, err := o.Read(ctx, args...)
	if err != nil {
		return nil, err
	}
	for sha := range strings.FieldsSeq(out) {
		list = append(list, strings.TrimPrefix(sha, "-"))
	}
	return list, nil
}

// MergedHistory returns the commits that say where the commits of claims come from: those that lead to the sources and
// the parents from their merge bases, and to the commits. It lists each once, as far as the clone has them.
func (g Repo) MergedHistory(ctx context.Context, claims []Merge) (list []string, err error) {
	o, err := g.objects(ctx)
	if err != nil {
		return nil, err
	}
	defer o.close()
	listed := make(map[string]bool)
	for _, m := range claims {
		out, err := o.Read(ctx, "rev-list", "--boundary", "--max-count="+strconv.Itoa(maxHistory),
			m.Source+"..."+m.Parent, m.Commit)
		if err != nil {
			return nil, err
		}
		for sha := range strings.FieldsSeq(out) {
			if sha = strings.TrimPrefix(sha, "-"); !listed[sha] {
				listed[sha] = true
				list = append(list, sha)
			}
		}
	}
	return list, nil
}

// CommitObjects returns the objects of commits, in the order of the list. It leaves out those that the clone lacks.
func (g Repo) CommitObjects(ctx context.Context, commits []string) (objects []lineage.Object, err error) {
	o, err := g.objects(ctx)
	if err != nil {
		return nil, err
	}
	defer o.close()
	present, err := o.present(ctx, "commit", commits)
	if err != nil {
		return nil, err
	}

	commits = slices.DeleteFunc(slices.Clone(commits), func(sha string) bool { return !present[sha] })
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
		objects = append(objects, lineage.Object{Commit: sha, Object: object})
	}
	return objects, nil
}
