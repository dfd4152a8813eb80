package server

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
)

const (
	defaultLimit = 50
	maxLimit     = 500
)

// parameters parses a query. Its error names all parameters that are unknown, or
// all that are repeated or empty.
func parameters(rawQuery string, allowed []string) (url.Values, error) {
	if rawQuery == "" {
		return nil, nil
	}
	query, err := url.ParseQuery(rawQuery)
	if err != nil {
		return nil, ledger.Errorf(ledger.CodeInvalidParameter, "invalid query: %v", err)
	}

	var unknown, invalid []ledger.FieldError
	for _, name := range slices.Sorted(maps.Keys(query)) {
		switch values := query[name]; {
		case !slices.Contains(allowed, name):
			unknown = append(unknown, ledger.FieldError{Field: name, Message: unknownParameter(allowed)})
		case len(values) > 1:
			invalid = append(invalid, ledger.FieldError{Field: name, Message: "given more than once"})
		case values[0] == "":
			invalid = append(invalid, ledger.FieldError{Field: name, Message: "empty: give a value or omit it"})
		}
	}
	switch {
	case len(unknown) > 0:
		return nil, ledger.FieldsError(ledger.CodeUnknownParameter, unknown...)
	case len(invalid) > 0:
		return nil, ledger.FieldsError(ledger.CodeInvalidParameter, invalid...)
	}
	return query, nil
}

func unknownParameter(allowed []string) string {
	if len(allowed) == 0 {
		return "unknown parameter (this endpoint has none)"
	}
	return "unknown parameter (use " + strings.Join(allowed, ", ") + ")"
}

func invalidParameter(name, format string, args ...any) error {
	return ledger.FieldErrorf(ledger.CodeInvalidParameter, name, format, args...)
}

// page parses the parameters limit and cursor.
func (c *call) page() (store.Query, error) {
	q := store.Query{Limit: defaultLimit, Cursor: c.query.Get("cursor")}
	text := c.query.Get("limit")
	if text == "" {
		return q, nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 1 || limit > maxLimit {
		return q, invalidParameter("limit", "%q is out of range (use 1 to %d)", text, maxLimit)
	}
	q.Limit = limit
	return q, nil
}

// listOfOrg returns the response for the page of an org's list that the caller asks for.
func listOfOrg[T any](
	c *call, list func(ctx context.Context, org string, q store.Query) (ledger.Page[T], error),
) (*reply, error) {
	q, err := c.page()
	if err != nil {
		return nil, err
	}
	page, err := list(c.ctx(), c.org(), q)
	return listed(c, page, err)
}

// parse parses a parameter with the function read. If the query does not have the
// parameter, it returns the zero value.
func parse[T any](c *call, name string, read func(string) (T, error)) (T, error) {
	var value T
	text := c.query.Get(name)
	if text == "" {
		return value, nil
	}
	value, err := read(text)
	if err != nil {
		return value, invalidParameter(name, "%v", err)
	}
	return value, nil
}
