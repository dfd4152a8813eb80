package radar

// maxNearDistance is the maximum number of unchanged lines between near lines.
const maxNearDistance = 25

// compareHunks compares the hunks of two changes of one text file.
func compareHunks(x, y *file, shared bool) finding {
	if shared {
		restX, restY := withoutShared(x, y)
		removed := len(restX.regions) < len(x.regions)
		if removed && (len(restX.regions) == 0 || len(restY.regions) == 0) && !x.isTruncated() && !y.isTruncated() {
			return finding{}
		}
		x, y = restX, restY
	}
	for _, step := range []struct {
		reason Reason
		find   func(x, y *file) matches
	}{{SameLines, conflicts}, {SameFunction, inSameFunction}, {NearLines, nearby}} {
		if m := step.find(x, y); len(m.x) > 0 {
			return finding{step.reason, x.ranges(m.x), y.ranges(m.y)}
		}
	}
	return sameFile(x, y)
}

// matches holds indexes of regions on both sides, possibly with duplicates.
type matches struct{ x, y []int }

func (m *matches) add(i, j int) { m.x, m.y = append(m.x, i), append(m.y, j) }

// sameChange reports whether both replace the same number of lines with the same text.
func sameChange(s, t region) bool {
	return s.lines == t.lines && s.added == t.added && (s.added == 0 || s.text != 0 && s.text == t.text)
}

// conflicts returns the hunks that git could not merge.
func conflicts(x, y *file) (m matches) {
	if x.sameOldBlob(y) {
		eachTouching(x, y, func(i, j int) {
			if s, t := x.regions[i], y.regions[j]; s.first != t.first || !sameChange(s, t) {
				m.add(i, j)
			}
		})
		return m
	}

	far := map[[2]int]bool{}
	eachShared(x.far, y.far, func(i, j int) {
		far[[2]int{i, j}] = true
		if !sameChange(x.regions[i], y.regions[j]) {
			m.add(i, j)
		}
	})
	eachShared(x.near, y.near, func(i, j int) {
		if !far[[2]int{i, j}] || !sameChange(x.regions[i], y.regions[j]) {
			m.add(i, j)
		}
	})
	return m
}

// eachTouching calls do for each two regions that share a gap.
func eachTouching(x, y *file, do func(i, j int)) {
	for i, j := 0, 0; i < len(x.regions) && j < len(y.regions); {
		s, t := x.regions[i], y.regions[j]
		if s.first <= t.last && t.first <= s.last {
			do(i, j)
		}
		if s.last < t.last {
			i++
		} else {
			j++
		}
	}
}

// eachShared calls do for the two regions of each hash that both sides have.
func eachShared(x, y []gapHash, do func(i, j int)) {
	for len(x) > 0 && len(y) > 0 {
		switch {
		case x[0].hash < y[0].hash:
			x = x[1:]
		case x[0].hash > y[0].hash:
			y = y[1:]
		default:
			do(x[0].region, y[0].region)
			x, y = x[1:], y[1:]
		}
	}
}

// inSameFunction returns the hunks in functions that both change.
func inSameFunction(x, y *file) (m matches) {
	for i, j := 0, 0; i < len(x.headings) && j < len(y.headings); {
		function := max(x.headings[i].function, y.headings[j].function)
		if x.headings[i].function != y.headings[j].function {
			for ; i < len(x.headings) && x.headings[i].function < function; i++ {
			}
			for ; j < len(y.headings) && y.headings[j].function < function; j++ {
			}
			continue
		}
		for ; i < len(x.headings) && x.headings[i].function == function; i++ {
			m.x = append(m.x, x.headings[i].region)
		}
		for ; j < len(y.headings) && y.headings[j].function == function; j++ {
			m.y = append(m.y, y.headings[j].region)
		}
	}
	return m
}

// nearby returns the hunks that are near a hunk of the other side.
func nearby(x, y *file) matches { return matches{x.hunksNear(y), y.hunksNear(x)} }

func (f *file) hunksNear(other *file) (hunks []int) {
	j := 0
	for i, s := range f.regions {
		for j < len(other.regions) && other.regions[j].last < s.first-maxNearDistance {
			j++
		}
		if j < len(other.regions) && other.regions[j].first <= s.last+maxNearDistance {
			hunks = append(hunks, i)
		}
	}
	return hunks
}

// withoutShared returns both files without the hunks that both have.
func withoutShared(x, y *file) (restX, restY *file) {
	var same matches
	note := func(i, j int) {
		if s, t := x.regions[i], y.regions[j]; sameChange(s, t) && (s.first == t.first || !x.sameOldBlob(y)) {
			same.add(i, j)
		}
	}
	if x.sameOldBlob(y) {
		eachTouching(x, y, note)
	} else {
		eachShared(x.far, y.far, note)
	}
	return x.without(same.x), y.without(same.y)
}

func sameFile(x, y *file) finding { return finding{SameFile, x.allRanges(), y.allRanges()} }
