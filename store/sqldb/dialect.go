package sqldb

import (
	"regexp"
	"strings"
)

// A Dialect describes, as data, how the SQL of an engine differs from that of others.
// Statements are written once, in the SQL that all engines share, with ? or ?1
// for parameters.
//
// Statements carry hints for the planner as comments, which a dialect may turn
// into syntax of its engine:
//
//	/*+ordered*/ JOIN    join in the order in which the tables are written
//	/*+index NAME*/      read the table before it by that index and no other
type Dialect struct {
	// Rewrite lists pairs of a text and its replacement for the engine.
	Rewrite []string
	// IndexHint is the text before and after the name of a hinted index; empty
	// if the engine has no such hint.
	IndexHint [2]string
	// NextID is a query for the id of a table's next row; the table's name is
	// appended.
	NextID string
	// Explain is the prefix that makes a statement return its plan, one step a
	// row.
	Explain string
	// Classify returns the class of a driver's error.
	Classify func(error) Class
}

// SQL translates a statement to the engine's syntax.
func (d *Dialect) SQL(statement string) string {
	if !strings.Contains(statement, "/*+") {
		return statement
	}
	statement = strings.NewReplacer(d.Rewrite...).Replace(statement)
	if d.IndexHint[0] == "" {
		return statement
	}
	var b strings.Builder
	for {
		before, hint, found := strings.Cut(statement, "/*+index ")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		name, after, _ := strings.Cut(hint, "*/")
		b.WriteString(d.IndexHint[0] + name + d.IndexHint[1])
		statement = after
	}
}

// classified wraps a driver's error that the dialect knows.
func (d *Dialect) classified(err error) error {
	if err == nil {
		return nil
	}
	if class := d.Classify(err); class != Other {
		return &Error{class, err}
	}
	return err
}

// A Special is SQL that needs another form on engines other than SQLite.
type Special struct {
	SQL *regexp.Regexp
	Why string
}

// OnlySQLite lists the SQL in statements that only SQLite accepts as written. Tests
// check that the list is complete.
func OnlySQLite() []Special {
	return []Special{
		{regexp.MustCompile(`\?[1-9]`), "a parameter that is used several times has a number; elsewhere it is $1"},
		{regexp.MustCompile(`ping ->> 'id'`), "pings are JSON in a column of text, to which elsewhere ->> does not apply"},
		{
			regexp.MustCompile(`coalesce\(e\.body, o\.ping\)`),
			"the body of an event is a blob and that of a ping text; elsewhere both need one type",
		},
	}
}
