package gitrepo

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/gitobject"
)

// metadata returns the commit's object, which the ledger parses itself. If the ledger would refuse the
// object (malformed or too large), it returns what git prints instead. The parents are those that the
// repository has: a shallow one lacks some.
func (g Repo) metadata(ctx context.Context, sha string) (n ledger.Registration, parents []string, err error) {
	const format = "%P%x00%an%x00%ae%x00%ct%x00%cn%x00%ce%x00%B"
	out, err := g.Read(ctx, "log", "-1", "--no-show-signature", "--no-color", "--encoding=UTF-8", "--format="+format, sha)
	if err != nil {
		return n, nil, err
	}
	const count = 7
	fields := strings.SplitN(out, "\x00", count)
	if len(fields) != count {
		return n, nil, fmt.Errorf("git log printed %d fields of commit %.12s, want %d", len(fields), sha,
			count)
	}
	parents = strings.Fields(fields[0])

	object, err := g.Read(ctx, "cat-file", "commit", sha)
	if err != nil {
		return n, nil, err
	}
	if o, err := gitobject.Parse(sha, []byte(object)); err == nil {
		return ledger.Registration{Object: o.Object}, parents, nil
	}
	return ledger.Registration{
		Author:      ledger.Author{Name: gitobject.PlainText(fields[1]), Email: gitobject.PlainText(fields[2])},
		CommittedAt: commitTime(fields[3]),
		Committer:   ledger.Author{Name: gitobject.PlainText(fields[4]), Email: gitobject.PlainText(fields[5])},
		Message:     gitobject.MessageText(fields[6]),
	}, parents, nil
}

// commitTime parses the Unix seconds of a commit. Git allows any number; it returns
// 0 for times that the ledger does not accept.
func commitTime(seconds string) ledger.Time {
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return 0
	}
	var t ledger.Time
	if t.UnmarshalText([]byte(time.Unix(n, 0).UTC().Format(time.RFC3339))) != nil {
		return 0
	}
	return t
}
