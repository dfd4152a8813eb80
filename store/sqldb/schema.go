package sqldb

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// An Object is a part of a schema, such as a table, an index or a trigger. Its names may be those of
// an attacker.
type Object struct {
	Kind, Name string
	Of         string // the table that it belongs to, empty for none
}

// maxName is the number of characters of a name that a message shows.
const maxName = 60

// String returns what a message shows of an object.
func (o Object) String() string {
	kind := strings.Trim(fmt.Sprintf("%.*q", maxName, o.Kind), `"`)
	if o.Of == "" || o.Of == o.Name {
		return fmt.Sprintf("%s %.*q", kind, maxName, o.Name)
	}
	return fmt.Sprintf("%s %.*q of %.*q", kind, maxName, o.Name, maxName, o.Of)
}

// A Schema has the definitions of the objects in a database.
type Schema map[Object]string

// Add adds a definition of an object, which may have several.
func (s Schema) Add(o Object, definition string) { s[o] += definition + "\n" }

// Digest returns the SHA-256 of a schema, in hex.
func (s Schema) Digest() string {
	hash := sha256.New()
	for _, o := range s.objects() {
		fmt.Fprintf(hash, "%q %q %q %q\n", o.Kind, o.Name, o.Of, s[o])
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// Compare returns a *SchemaError unless a schema is the wanted one.
func (s Schema) Compare(want Schema) error {
	var more, other, missing []string
	for _, o := range s.objects() {
		switch wanted, ok := want[o]; {
		case !ok:
			more = append(more, o.String()+" is unknown")
		case wanted != s[o]:
			other = append(other, o.String()+" was changed")
		}
	}
	for _, o := range want.objects() {
		if _, ok := s[o]; !ok {
			missing = append(missing, o.String()+" is missing")
		}
	}
	if all := slices.Concat(more, other, missing); len(all) > 0 {
		return &SchemaError{all}
	}
	return nil
}

// objects returns the objects of a schema, views and triggers first.
func (s Schema) objects() []Object {
	return slices.SortedFunc(maps.Keys(s), func(a, b Object) int {
		return cmp.Or(cmp.Compare(b.Kind, a.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Of, b.Of))
	})
}

// A SchemaError is the error of a database whose schema is not one that ledgerd makes: what is in it may
// run as part of any statement.
type SchemaError struct {
	// Differences has a line for each difference, without control characters.
	Differences []string
}

// TooNew is the error of a database whose schema is of a newer release.
func TooNew(version, latest int) error {
	return fmt.Errorf("schema version %d is too new: this release supports versions up to %d "+
		"(use the newer release that wrote it)", version, latest)
}

// maxDifferences is the number of differences that a message shows.
const maxDifferences = 10

func (e *SchemaError) Error() string {
	shown := e.Differences[:min(len(e.Differences), maxDifferences)]
	more := ""
	if n := len(e.Differences) - len(shown); n > 0 {
		more = fmt.Sprintf(", and %d more", n)
	}
	return fmt.Sprintf("the database has another schema than ledgerd creates: %s%s (use a backup of your "+
		"own; drop what you have created yourself: the database is for ledgerd alone)", strings.Join(shown, ", "), more)
}
