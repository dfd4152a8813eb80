package store

import (
	"context"
	"maps"
	"slices"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// Plans returns the query plan of every statement that the store has run, as steps.
func (s *Store) Plans(ctx context.Context) (map[string][]string, error) {
	plans := make(map[string][]string)
	add := func(c *sqldb.Conn) error {
		for _, statement := range c.Statements() {
			steps, err := c.Plan(statement)
			if err != nil {
				return err
			}
			plans[statement] = steps
		}
		return nil
	}
	for lane := range sqldb.Lanes {
		for range 8 { // all connections of the lane
			if err := s.db.ReadLoose(ctx, sqldb.Reader{Lane: lane}, add); err != nil {
				return nil, err
			}
		}
	}
	return plans, s.db.Write(ctx, sqldb.Write{Do: add})
}

// Statements returns the statements of plans, sorted.
func Statements(plans map[string][]string) []string { return slices.Sorted(maps.Keys(plans)) }
