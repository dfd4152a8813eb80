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

// Crowd takes every turn of making a page; a full one, the places of those who
// wait too. The turns are free again after end.
func (s *Site) Crowd(full bool) (end func()) {
	queues := []chan struct{}{s.turns.making}
	if full {
		queues = append(queues, s.turns.waiting)
	}
	for _, queue := range queues {
		for range cap(queue) {
			queue <- struct{}{}
		}
	}
	return func() {
		for _, queue := range queues {
			for range cap(queue) {
				<-queue
			}
		}
	}
}
