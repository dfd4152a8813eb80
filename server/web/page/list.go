package page

import (
	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
)

// maxListPages is the maximum number of pages of the API that a web page reads of one list.
const maxListPages = 5

// Filled returns a page of q.Limit records. The API examines only some thousand rows for
// a page, so the page can be short although there are more records. Then Filled goes on to
// the next ones, up to maxListPages. NextCursor continues the list.
func Filled[T any](q client.Query, read func(client.Query) (ledger.Page[T], error)) (ledger.Page[T], error) {
	list, err := read(q)
	limit := q.Limit
	for n := 1; err == nil && n < maxListPages && list.NextCursor != "" && len(list.Data) < limit; n++ {
		q.Limit, q.Cursor = limit-len(list.Data), list.NextCursor
		var more ledger.Page[T]
		more, err = read(q)
		list.Data, list.NextCursor = append(list.Data, more.Data...), more.NextCursor
	}
	return list, err
}
