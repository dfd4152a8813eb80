package gitrepo

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/ledgerd/ledgerd/ledger"
)

// maxMessage is the ledger's limit for a commit message, in bytes.
const maxMessage = 64 << 10

// metadata reads the parents, author, committer, committer date, message and signing key
// of a commit.
func (g Repo) metadata(ctx context.Context, sha string) (ledger.Registration, error) {
	const format = "%P%x00%an%x00%ae%x00%ct%x00%cn%x00%ce%x00%B"
	out, err := g.Read(ctx, "log", "-1", "--no-show-signature", "--no-color", "--encoding=UTF-8", "--format="+format, sha)
	if err != nil {
		return ledger.Registration{}, err
	}
	const count = 7
	fields := strings.SplitN(out, "\x00", count)
	if len(fields) != count {
		return ledger.Registration{}, fmt.Errorf("git log printed %d fields of commit %.12s, want %d", len(fields), sha,
			count)
	}
	key, err := g.signingKey(ctx, sha)
	return ledger.Registration{
		Parents:     strings.Fields(fields[0]),
		Author:      ledger.Author{Name: plainText(fields[1]), Email: plainText(fields[2])},
		CommittedAt: commitTime(fields[3]),
		Committer:   ledger.Author{Name: plainText(fields[4]), Email: plainText(fields[5])},
		Message:     messageText(fields[6]),
		SigningKey:  key,
	}, err
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

// plainText returns s as valid UTF-8 and without control characters. Git accepts any
// bytes in names; the ledger does not.
func plainText(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD")))
}

// messageText returns a commit message as valid UTF-8, cut to maxMessage bytes. It retains
// the co-authors, who are usually at the end.
func messageText(s string) string {
	s = strings.TrimSpace(strings.ToValidUTF8(s, "\uFFFD"))
	if len(s) <= maxMessage {
		return s
	}
	trailers := "\n\n" + strings.Join(ledger.CoAuthorTrailers(s), "\n")
	if len(trailers) > maxMessage {
		trailers = "" // too many to register
	}
	return strings.ToValidUTF8(s[:maxMessage-len(trailers)], "") + trailers
}
