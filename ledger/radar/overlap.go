package radar

// A LineRange is where a hunk was before the change: so many lines from the
// first on, or, where there are none, behind the line Start.
type LineRange struct {
	Start int `json:"start"`
	Lines int `json:"lines"`
}

// A Path is one path at which two commits overlap.
type Path struct {
	// Path is what a file that was there before was called then; that of a
	// directory has a slash at its end.
	Path   string `json:"path"`
	Level  Level  `json:"level"`
	Reason Reason `json:"reason"`
	Ranges Ranges `json:"ranges"`
}

// Ranges are the lines concerned, as each of the two commits found them:
// the first few of them, and none where it is not about lines.
type Ranges struct {
	Commit []LineRange `json:"commit"`
	Other  []LineRange `json:"other"`
}

// The most that is kept of what one commit overlaps with.
const (
	MaxPairs = 200 // of one registration
	MaxPaths = 100 // of one pair
)

// An Overlap is what two change records have to do with each other.
type Overlap struct {
	// Level is that of the strongest path; NoLevel where there is none.
	Level Level
	// Paths are all the paths concerned, the strongest first.
	Paths []Path
}

// Strongest returns the first paths, at most MaxPaths.
func (o Overlap) Strongest() []Path { return o.Paths[:min(len(o.Paths), MaxPaths)] }

// Swap returns what the overlap is with its two sides exchanged.
func (o Overlap) Swap() Overlap {
	swapped := Overlap{Level: o.Level}
	for _, p := range o.Paths {
		p.Ranges.Commit, p.Ranges.Other = p.Ranges.Other, p.Ranges.Commit
		swapped.Paths = append(swapped.Paths, p)
	}
	return swapped
}

// A finding is what comes of two changes that concern one path: nothing where
// the reason is empty. The ranges are of either side.
type finding struct {
	reason Reason
	x, y   []LineRange
}
