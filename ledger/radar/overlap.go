package radar

// A LineRange is the position of a hunk in the old file: Lines lines from line Start on.
// If Lines is 0, the hunk adds lines after line Start.
type LineRange struct {
	Start int `json:"start"`
	Lines int `json:"lines"`
}

// A Path is one path at which two commits overlap.
type Path struct {
	// Path is the path before any rename. That of a directory ends in a slash.
	Path   string `json:"path"`
	Level  Level  `json:"level"`
	Reason Reason `json:"reason"`
	Ranges Ranges `json:"ranges"`
}

// Ranges holds the overlapping lines, by their numbers in the old file of each commit. It
// has only the first few, and none if the reason is not about lines.
type Ranges struct {
	Commit []LineRange `json:"commit"`
	Other  []LineRange `json:"other"`
}

// The limits of stored overlaps.
const (
	MaxPairs = 200 // per registration
	MaxPaths = 100 // per pair
)

// An Overlap is the result of comparing two change records.
type Overlap struct {
	// Level is the level of the strongest path, or NoLevel without paths.
	Level Level
	// Paths holds all overlapping paths, strongest first.
	Paths []Path
}

// Strongest returns the strongest paths, at most MaxPaths.
func (o Overlap) Strongest() []Path { return o.Paths[:min(len(o.Paths), MaxPaths)] }

// Swap returns the overlap with its two sides exchanged.
func (o Overlap) Swap() Overlap {
	swapped := Overlap{Level: o.Level}
	for _, p := range o.Paths {
		p.Ranges.Commit, p.Ranges.Other = p.Ranges.Other, p.Ranges.Commit
		swapped.Paths = append(swapped.Paths, p)
	}
	return swapped
}

// A finding is the result of comparing two changes at one path. An empty reason means no
// overlap. The fields x and y are the ranges of the two sides.
type finding struct {
	reason Reason
	x, y   []LineRange
}
