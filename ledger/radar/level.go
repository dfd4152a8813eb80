package radar

import (
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// A Level is how badly two commits overlap. Levels are ordered.
type Level uint8

// The levels.
const (
	NoLevel Level = iota
	Low           // files of one directory
	Medium        // the same file
	High          // git could not merge the two
)

var levelNames = [...]string{"none", "LOW", "MEDIUM", "HIGH"}

func (l Level) String() string {
	if int(l) < len(levelNames) {
		return levelNames[l]
	}
	return fmt.Sprintf("Level(%d)", uint8(l))
}

// ParseLevel reads the name of a level, or none.
func ParseLevel(name string) (Level, error) {
	for i, n := range levelNames {
		if n == name {
			return Level(i), nil
		}
	}
	return 0, fmt.Errorf("%q is not a level (use LOW, MEDIUM, HIGH or none)", text.Clip(name))
}

// AppendText implements encoding.TextAppender.
func (l Level) AppendText(b []byte) ([]byte, error) { return append(b, l.String()...), nil }

// MarshalText implements encoding.TextMarshaler.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads the name of a level, or none.
func (l *Level) UnmarshalText(b []byte) error {
	parsed, err := ParseLevel(string(b))
	if err != nil {
		return err
	}
	*l = parsed
	return nil
}

// A Reason tells why two commits overlap at a path.
type Reason string

// Reasons lists the reasons, the weightiest first.
func Reasons() []Reason { return slices.Clone(reasons[:]) }

// The reasons, the weightiest first: eight of level HIGH, three of MEDIUM and
// one of LOW.
const (
	SameLines     Reason = "same_lines"     // both change the same lines, or lines that touch
	DeleteEdit    Reason = "delete_edit"    // one deletes what the other changes
	RenameRename  Reason = "rename_rename"  // both rename it, to different names
	RenameDelete  Reason = "rename_delete"  // one renames what the other deletes
	AddAdd        Reason = "add_add"        // both make it, with different contents
	BinaryBoth    Reason = "binary"         // both change a binary file
	TypeChange    Reason = "type"           // it changes in type or mode, or is a symlink or submodule that both change
	DirectoryFile Reason = "directory_file" // one makes a file where the other has a directory
	SameFunction  Reason = "same_function"  // both change lines of one function
	NearLines     Reason = "near_lines"     // both change lines that are close to each other
	SameFile      Reason = "same_file"      // both change the file
	SiblingFiles  Reason = "sibling_files"  // both change files of the directory
)

var reasons = [...]Reason{
	SameLines, DeleteEdit, RenameRename, RenameDelete, AddAdd, BinaryBoth, TypeChange, DirectoryFile,
	SameFunction, NearLines, SameFile, SiblingFiles,
}

// Level returns the level of overlaps for that reason.
func (r Reason) Level() Level {
	switch r {
	case "":
		return NoLevel
	case SiblingFiles:
		return Low
	case SameFunction, NearLines, SameFile:
		return Medium
	}
	return High
}

// weight orders reasons, the weightiest first.
func (r Reason) weight() int { return slices.Index(reasons[:], r) }
