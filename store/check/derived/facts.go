package derived

import (
	"crypto/sha256"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
)

// checkObjects is the check of the objects of commits that are not registered.
const checkObjects = "object"

// A shortDigest is the first half of a SHA-256, which says enough of what nobody can choose
// freely, in half the memory.
type shortDigest [sha256.Size / 2]byte

func shorten(text string) (d shortDigest) {
	sum := sha256.Sum256([]byte(text))
	copy(d[:], sum[:])
	return d
}

// loggedFacts has what the latest events of an org say of its commits.
type loggedFacts struct {
	latest map[shortDigest]shortDigest // digests of the facts by commits
	// objects are the commits that events list because their objects are known, without those that were found.
	objects map[shortDigest]bool
	unread  int64 // events without a body that can be trusted
	limit   int   // of commits
	left    int64 // events of commits beyond the limit
	// leftObjects counts the listed commits beyond the limit.
	leftObjects int64
	// unlogged are commits that differ, while the server logs those from before an upgrade.
	unlogged int64
}

func commitKey(repo int64, sha string) shortDigest { return shorten(fmt.Sprintf("%d@%s", repo, sha)) }

// add adds an event, which must be newer than those before.
func (l *loggedFacts) add(repoID int64, kind ledger.EventType, body ledger.Event) {
	if kind != ledger.EventCommit {
		return
	}
	said, ok := body.(*ledger.CommitEvent)
	if ok && said.Objects != nil {
		l.addObjects(repoID, said.Objects)
		return
	}
	if !ok || said.Facts == "" {
		l.unread++
		return
	}
	key := commitKey(repoID, said.Commit)
	if _, ok := l.latest[key]; !ok && len(l.latest) >= l.limit {
		l.left++
		return
	}
	l.latest[key] = shorten(said.Facts)
}

// addObjects adds the commits that an event lists.
func (l *loggedFacts) addObjects(repoID int64, commits []string) {
	for _, sha := range commits {
		if len(l.objects) >= l.limit {
			l.leftObjects++
			continue
		}
		l.objects[commitKey(repoID, sha)] = true
	}
}
