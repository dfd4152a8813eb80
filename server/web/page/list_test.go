package page

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
)

// A web page goes on after short and empty pages of the API, up to a limit.
func TestFilledReadsOn(t *testing.T) {
	for _, test := range []struct {
		sizes []int // of the pages of the API; the last one has no next page
		limit int
		want  int
		next  string
	}{
		{[]int{3, 1}, 3, 3, "1"},
		{[]int{0, 0, 2, 5}, 3, 3, "4"},
		{[]int{0, 1}, 3, 1, ""},
		{[]int{0, 0, 0, 0, 0, 0, 0}, 3, 0, strconv.Itoa(maxListPages)},
	} {
		list, err := Filled(client.Query{Limit: test.limit}, func(q client.Query) (ledger.Page[int], error) {
			n, _ := strconv.Atoi(q.Cursor)
			p := ledger.Page[int]{Data: slices.Repeat([]int{n}, min(test.sizes[n], q.Limit))}
			if n+1 < len(test.sizes) || test.sizes[n] > q.Limit {
				p.NextCursor = fmt.Sprint(n + 1)
			}
			return p, nil
		})
		if err != nil || len(list.Data) != test.want || list.NextCursor != test.next {
			t.Errorf("pages of %v: got %d records, next %q, %v; want %d, next %q",
				test.sizes, len(list.Data), list.NextCursor, err, test.want, test.next)
		}
	}
}
