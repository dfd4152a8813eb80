package radar

import (
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// A Level is how severely two commits overlap. Levels are ordered.
type Level uint8

// The levels.
const (
	NoLevel Level = iota
	Low           // both change files in one directory
	Medium        // both change the same file, and git could merge it
	High          // git could not merge the two
)

var levelNames = [...]string{"none", "LOW", "MEDIUM", "HIGH"}

func (l Level) String() string {
	if int(l) < len(levelNames) {
		return levelNames[l]
	}
	return fmt.Sprintf("Level(%d)", uint8(l))
}

// ParseLevel parses the name of a level: LOW, MEDIUM, HIGH or none.
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

// UnmarshalText implements encoding.TextUnmarshaler, as ParseLevel does.
func (l *Level) UnmarshalText(b []byte) error { return text.Into(l, b, ParseLevel) }

// A Reason is why two commits overlap at a path.
type Reason string

// The reasons, strongest first: eight of level HIGH, three of MEDIUM and one of LOW.
const (
	SameLines     Reason = "same_lines"     // both change the same or adjacent lines
	DeleteEdit    Reason = "delete_edit"    // one deletes the file that the other changes
	RenameRename  Reason = "rename_rename"  // both rename the file, to different paths
	RenameDelete  Reason = "rename_delete"  // one renames the file that the other deletes
	AddAdd        Reason = "add_add"        // both add the file, with different contents
	BinaryBoth    Reason = "binary"         // both change a binary file
	TypeChange    Reason = "type"           // type or mode changes, or both change a symlink or submodule
	DirectoryFile Reason = "directory_file" // one adds a file where the other has a directory
	SameFunction  Reason = "same_function"  // both change lines in the same function
	NearLines     Reason = "near_lines"     // both change lines near each other
	SameFile      Reason = "same_file"      // both change the file
	SiblingFiles  Reason = "sibling_files"  // both change files in the directory
)

var reasons = [...]Reason{
	SameLines, DeleteEdit, RenameRename, RenameDelete, AddAdd, BinaryBoth, TypeChange, DirectoryFile,
	SameFunction, NearLines, SameFile, SiblingFiles,
}

// Level returns the level of an overlap for this reason.
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

// weight returns the rank of a reason; 0 is the strongest.
func (r Reason) weight() int { return slices.Index(reasons[:], r) }
