package web

import "github.com/ledgerd/ledgerd/ledger"

// A Route is what tests may know of a route.
type Route struct {
	Method, Pattern string
	Scope           ledger.Scope // 0: open
}

// Routes returns the whole table.
func Routes() []Route {
	var all []Route
	for _, rt := range routes() {
		all = append(all, Route{rt.method, rt.pattern, rt.scope})
	}
	return all
}
