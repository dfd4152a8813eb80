package sqldb

import (
	"regexp"
	"strings"
)

// A Dialect holds, as data, what differs between engines in how they take SQL.
// Statements are written once, in the SQL that all engines share, with ? or ?1
// for parameters.
//
// Statements carry hints for the planner as comments, which a dialect may turn
// into syntax of its engine:
//
//	/*+ordered*/ JOIN    join in the order in which the tables are written
//	/*+index NAME*/      read the table before it by that index and no other
type Dialect struct {
	// Rewrite lists pairs of a text and what the engine gets in its place.
	Rewrite []string
	// IndexHint is what stands before and after the name of a hinted index;
	// empty where the engine takes no such hint.
	IndexHint [2]string
	// NextID is a query for the id of a table's next row; the table's name is
	// appended.
	NextID string
	// Explain makes a statement one that returns its plan, a step a row.
	Explain string
	// Classify returns the class of a driver's error.
	Classify func(error) Class
}

// SQL returns a statement as the engine takes it.
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

// A Special is SQL that engines other than SQLite have to be given in another form.
type Special struct {
	SQL *regexp.Regexp
	Why string
}

// OnlySQLite lists what statements hold that only SQLite takes as it is written.
// Tests check that there is nothing else.
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
