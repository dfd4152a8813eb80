package sqldb

import (
	"strconv"
	"strings"
)

// A Dialect describes, as data, how the SQL of an engine differs from that of
// other engines. Statements are written once, in SQL that all engines share, with
// parameters as ? or ?1.
//
// Statements have hints for the query planner in comments, which a dialect may
// translate to the engine's syntax:
//
//	/*+ordered*/ JOIN    join the tables in the order written
//	/*+index NAME*/      read the preceding table by this index only
//	(/*+rows*/ (?, ?))   a list of rows to the right of IN
//	NAME/*+nocase*/      a column to the left of IN that ignores the case of letters
type Dialect struct {
	// Rewrite lists texts in statements, each followed by its replacement.
	Rewrite []string
	// Numbered writes parameters as $1.
	Numbered bool
	// IndexHint is the text before and after the index name of a hint. It is empty
	// if the engine has no index hints.
	IndexHint [2]string
	// NextID is a query for the id of a table's next row. The table name is appended
	// to it.
	NextID string
	// IDs is how many ids such a query reserves. 0 means as many as are needed.
	IDs int64
	// Classify returns the class of an error from the driver.
	Classify func(error) Class
}

// SQL translates a statement to the engine's syntax.
func (d *Dialect) SQL(statement string) string {
	statement = strings.NewReplacer(d.Rewrite...).Replace(statement)
	if d.Numbered {
		statement = numbered(statement)
	}
	if !strings.Contains(statement, "/*+") {
		return statement
	}

	if d.IndexHint[0] == "" {
		return statement
	}
	var b strings.Builder
	for {
		before, hint, ok := strings.Cut(statement, "/*+index ")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		name, after, _ := strings.Cut(hint, "*/")
		b.WriteString(d.IndexHint[0] + name + d.IndexHint[1])
		statement = after
	}
}

// wrap returns an *Error if the dialect can classify err, and err itself if not.
func (d *Dialect) wrap(err error) error {
	if err == nil {
		return nil
	}
	if class := d.Classify(err); class != Other {
		return &Error{class, err}
	}
	return err
}

// numbered writes the parameters of a statement as $1, $2 and so on. Those written ? get the next
// number.
func numbered(statement string) string {
	var b strings.Builder
	last, quoted := 0, false

	for i := 0; i < len(statement); i++ {
		char := statement[i]
		if char == '\'' {
			quoted = !quoted
		}
		if char != '?' || quoted {
			b.WriteByte(char)
			continue
		}

		n := last + 1
		if i+1 < len(statement) && statement[i+1] >= '1' && statement[i+1] <= '9' {
			i++
			n = int(statement[i] - '0')
		}
		last = max(last, n)
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(n))
	}
	return b.String()
}
