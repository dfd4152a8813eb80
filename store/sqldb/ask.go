package sqldb

import "math"

// An Asked is a query that was asked, and is answered later.
type Asked struct {
	conn   *Conn
	query  string
	answer Answer
}

// Ask asks a query of few rows. An engine on another host gets it together with the next statement, and
// with other queries that were asked: all of them take one round trip. The answer is what the query returns
// when it is taken. It need not be taken; but if the query fails, so does the next statement. The arguments must not
// change until then.
func (c *Conn) Ask(query string, args ...any) Asked {
	return Asked{c, query, c.driver.Ask(query, args)}
}

// Row takes the answer like Conn.Row.
func (a Asked) Row() Scanner {
	if err := a.conn.ctx.Err(); err != nil {
		return failedRow{err}
	}
	rows, err := a.answer(a.conn.ctx)
	return a.conn.first(rows, err, a.query)
}

// Each takes the answer like Conn.Each.
func (a Asked) Each(visit func(Scanner) error) error {
	if err := a.conn.ctx.Err(); err != nil {
		return err
	}
	rows, err := a.answer(a.conn.ctx)
	return a.conn.visit(rows, err, visit, a.query)
}

// AskIn asks a query that ends with IN for keys of the given number of columns, and returns the function that
// takes the answer like Conn.Each.
func (c *Conn) AskIn(query string, columns int, keys []any) (each func(visit func(Scanner) error) error) {
	var asked []Asked
	for rest := keys; len(rest) > 0; {
		var list string
		var args []any
		list, args, rest = c.driver.List(query, columns, rest)
		asked = append(asked, c.Ask(list, args...))
	}
	return func(visit func(Scanner) error) error {
		for _, a := range asked {
			if err := a.Each(visit); err != nil {
				return err
			}
		}
		return nil
	}
}

// EachIn runs a query that ends with IN, as for AskIn, and calls visit for each row.
func (c *Conn) EachIn(visit func(Scanner) error, query string, columns int, keys []any) error {
	for rest := keys; len(rest) > 0; {
		var list string
		var args []any
		list, args, rest = c.driver.List(query, columns, rest)
		if err := c.Each(visit, list, args...); err != nil {
			return err
		}
	}
	return nil
}

// AskIDs asks for the ids of the next rows of a table, and returns the function that takes the answer: the
// next id, and the first one after it that is not reserved. Only the writer may call it.
func (c *Conn) AskIDs(table string) func() (next, end int64, err error) {
	asked := c.Ask(c.dialect.NextID + table)
	return func() (next, end int64, err error) {
		err = asked.Row().Scan(&next)
		if c.dialect.IDs == 0 {
			return next, math.MaxInt64, err
		}
		return next, next + c.dialect.IDs, err
	}
}
