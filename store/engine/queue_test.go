package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// Orgs take turns, and the items of an org stay in order.
func TestTurnQueue(t *testing.T) {
	q := newTurnQueue[string]()
	for _, item := range strings.Fields("a1 a2 a3 b1 a4 c1 b2") {
		q.push(item[:1], item)
	}
	for item, want := range map[string]bool{"a2": true, "a9": false, "c1": true, "d1": false} {
		if got := q.remove(item[:1], item); got != want {
			t.Errorf("remove %s reports %v", item, got)
		}
	}

	var got []string
	for item, ok := q.pop(); ok; item, ok = q.pop() {
		got = append(got, item)
		if item == "b1" {
			q.push("c", "c2")
		}
	}
	if want := strings.Fields("a1 b1 a3 b2 c2 a4"); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if q.size != 0 || len(q.waiting) > 0 || len(q.orgs) > 0 {
		t.Errorf("the empty queue is %+v", q)
	}
}

func TestTurnQueueKeepsWhatWasPushed(t *testing.T) {
	q := newTurnQueue[int]()
	in := make(map[int]string) // the orgs of the items in the queue

	for i := range 2000 {
		org := fmt.Sprint("org", rand.N(5))
		switch rand.N(3) {
		case 0:
			if item, ok := q.pop(); ok != (len(in) > 0) || ok && in[item] == "" {
				t.Fatalf("pop returns %d %v, and %d items are in the queue", item, ok, len(in))
			} else {
				delete(in, item)
			}
		case 1:
			item := rand.N(i + 1)
			if got := q.remove(org, item); got != (in[item] == org) {
				t.Fatalf("remove reports %v", got)
			} else if got {
				delete(in, item)
			}
		default:
			in[i] = org
			q.push(org, i)
		}

		if q.size != len(in) {
			t.Fatalf("size is %d, want %d", q.size, len(in))
		}
	}
}

// The oldest job counts, of whatever org.
func TestOldestJobOfAllOrgs(t *testing.T) {
	q := newJobQueue()
	if oldest := q.oldest(); oldest != 0 || q.since(oldest) != 0 {
		t.Errorf("empty queue: got %d", oldest)
	}
	for i, org := range []string{"b", "a", "c", "a"} {
		j := q.newJob(t.Context(), sqldb.Write{Org: org})
		j.queued = int64(100 - i)
		q.push(j)
	}
	if oldest := q.oldest(); oldest != 98 { // the second one of a came after the first
		t.Errorf("got %d, want 98", oldest)
	}
}

// A batch has the writes of each org together, so that sets stay large.
func TestABatchKeepsTheWritesOfAnOrgTogether(t *testing.T) {
	q := newJobQueue()
	for _, name := range strings.Fields("a1 b1 a2 c1 b2 a3") {
		q.push(&job{Write: sqldb.Write{Org: name[:1], Item: name}})
	}
	var got []string
	for _, j := range q.take(nil) {
		got = append(got, j.Item.(string))
	}
	if want := strings.Fields("a1 a2 a3 b1 b2 c1"); !slices.Equal(got, want) {
		t.Errorf("the batch is %v, want %v", got, want)
	}
	if rest := q.take(nil); len(rest) > 0 {
		t.Errorf("%d writes are left", len(rest))
	}
}
