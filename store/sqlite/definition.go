package sqlite

import (
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// definition returns the text by which an object of a schema is compared. It is plain. In that of a table, the columns
// and constraints have the order of their texts: a migration adds a column at the end, a new database has it where it
// belongs, and no statement depends on it.
func definition(o sqldb.Object, statement string) string {
	text := plain(statement)
	begin, body, _ := strings.Cut(text, "(")
	switch begin {
	case "CREATE TABLE " + o.Name + " ", `CREATE TABLE "` + o.Name + `" `: // the latter was renamed
	default:
		return text
	}
	list, end := parts(body)
	if end == "" {
		return text
	}
	slices.Sort(list)
	return "CREATE TABLE " + o.Name + " (" + strings.Join(list, ", ") + end
}

// parts returns the columns and constraints of a table, given the plain text behind its opening bracket, and the rest
// from its closing bracket on. The rest is empty if there is no such bracket.
func parts(text string) (list []string, end string) {
	depth, begin := 0, 0
	for at := 0; at < len(text); at += quoted(text[at:]) {
		isEnd := text[at] == ')' && depth == 0
		if isEnd || text[at] == ',' && depth == 0 {
			list = append(list, strings.Trim(text[begin:at], " "))
			begin = at + 1
		}
		switch {
		case isEnd:
			return list, text[at:]
		case text[at] == '(':
			depth++
		case text[at] == ')':
			depth--
		}
	}
	return list, ""
}

// plain returns the text of a statement without comments, and with single spaces between its tokens.
// Releases differ in these. What is quoted stays as it is, and so does a text that SQLite reads only up
// to a zero byte.
func plain(statement string) string {
	if strings.Contains(statement, "\x00") {
		return statement
	}
	var b strings.Builder
	for rest := statement; rest != ""; {
		n := gap(rest)
		if n > 0 && b.Len() > 0 && n < len(rest) {
			b.WriteByte(' ')
		}
		rest = rest[n:]
		n = quoted(rest)
		b.WriteString(rest[:n])
		rest = rest[n:]
	}
	return b.String()
}

// gap returns the length of the white space and the comments at the beginning of a text.
func gap(text string) int {
	rest := text
	for {
		before := len(rest)
		rest = strings.TrimLeft(rest, " \t\n\f\r")
		if strings.HasPrefix(rest, "--") {
			_, rest, _ = strings.Cut(rest, "\n")
		}
		if strings.HasPrefix(rest, "/*") {
			_, rest, _ = strings.Cut(rest[2:], "*/")
		}
		if len(rest) == before {
			return len(text) - before
		}
	}
}

// quoted returns the length of the quoted text, or else of the one byte, at the beginning of a text.
func quoted(text string) int {
	if text == "" {
		return 0
	}
	end := text[:1]
	switch end {
	case "[":
		end = "]"
	case "'", `"`, "`":
	default:
		return 1
	}
	// A doubled quote is the end of a text and the beginning of the next one.
	if i := strings.Index(text[1:], end); i >= 0 {
		return i + 2
	}
	return len(text)
}
