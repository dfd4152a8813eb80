package doctor

import (
	"context"
	"errors"

	"github.com/ledgerd/ledgerd/store/postgres"
)

// server examines a database on a PostgreSQL server, and reports whether it can be read.
func (e *examination) server(ctx context.Context) (readable bool) {
	const check = "database"
	db, err := postgres.OpenReadOnly(ctx, string(e.settings.Database))
	if errors.Is(err, postgres.ErrEmpty) {
		e.add(check, OK, "the database on the server is empty: serve creates the tables")
		return false
	}
	if err != nil {
		e.add(check, Problem, "%v", err)
		return false
	}

	risks, err := db.Risks(ctx)
	if err = errors.Join(err, db.Close()); err != nil {
		e.add(check, Problem, "%v", err)
		return false
	}
	for _, risk := range risks {
		e.add(check, Warning, "%s", risk)
	}
	if len(risks) == 0 {
		e.add(check, OK, "the server is reached, and the schema is that of this release")
	}
	return true
}
