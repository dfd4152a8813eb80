package radar

const nearBy = 25 // at most so many unchanged lines lie between lines close to each other

// compareHunks compares two changes of one text file.
func compareHunks(x, y *file, shared bool) finding {
	if shared {
		restX, restY := withoutShared(x, y)
		found := len(restX.places) < len(x.places)
		if found && (len(restX.places) == 0 || len(restY.places) == 0) && !x.isCut() && !y.isCut() {
			return finding{}
		}
		x, y = restX, restY
	}
	for _, step := range []struct {
		reason Reason
		find   func(x, y *file) marks
	}{{SameLines, conflicts}, {SameFunction, inOneFunction}, {NearLines, closeBy}} {
		if m := step.find(x, y); len(m.x) > 0 {
			return finding{step.reason, x.ranges(m.x), y.ranges(m.y)}
		}
	}
	return sameFile(x, y)
}

// marks are the indexes of places on either side; one may stand there twice.
type marks struct{ x, y []int }

func (m *marks) add(i, j int) { m.x, m.y = append(m.x, i), append(m.y, j) }

// sameChange reports whether both put the same lines in the place of as many.
func sameChange(s, t place) bool {
	return s.lines == t.lines && s.added == t.added && (s.added == 0 || s.text != 0 && s.text == t.text)
}

// conflicts finds the hunks that git could not merge.
func conflicts(x, y *file) (m marks) {
	if x.startsWith(y) {
		eachMeeting(x, y, func(i, j int) {
			if s, t := x.places[i], y.places[j]; s.first != t.first || !sameChange(s, t) {
				m.add(i, j)
			}
		})
		return m
	}
	far := map[[2]int]bool{}
	eachShared(x.far, y.far, func(i, j int) {
		far[[2]int{i, j}] = true
		if !sameChange(x.places[i], y.places[j]) {
			m.add(i, j)
		}
	})
	eachShared(x.near, y.near, func(i, j int) {
		if !far[[2]int{i, j}] || !sameChange(x.places[i], y.places[j]) {
			m.add(i, j)
		}
	})
	return m
}

// eachMeeting calls do for each two places that share a gap.
func eachMeeting(x, y *file, do func(i, j int)) {
	for i, j := 0, 0; i < len(x.places) && j < len(y.places); {
		s, t := x.places[i], y.places[j]
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

// eachShared calls do for the places of each hash that both have.
func eachShared(x, y []gapHash, do func(i, j int)) {
	for len(x) > 0 && len(y) > 0 {
		switch {
		case x[0].hash < y[0].hash:
			x = x[1:]
		case x[0].hash > y[0].hash:
			y = y[1:]
		default:
			do(x[0].place, y[0].place)
			x, y = x[1:], y[1:]
		}
	}
}

// inOneFunction finds the hunks that stand in a function which both change.
func inOneFunction(x, y *file) (m marks) {
	for i, j := 0, 0; i < len(x.by) && j < len(y.by); {
		function := max(x.by[i].function, y.by[j].function)
		if x.by[i].function != y.by[j].function {
			for ; i < len(x.by) && x.by[i].function < function; i++ {
			}
			for ; j < len(y.by) && y.by[j].function < function; j++ {
			}
			continue
		}
		for ; i < len(x.by) && x.by[i].function == function; i++ {
			m.x = append(m.x, x.by[i].place)
		}
		for ; j < len(y.by) && y.by[j].function == function; j++ {
			m.y = append(m.y, y.by[j].place)
		}
	}
	return m
}

// closeBy finds the hunks that lie close to one of the other side.
func closeBy(x, y *file) marks { return marks{x.closeTo(y), y.closeTo(x)} }

func (f *file) closeTo(other *file) (close []int) {
	j := 0
	for i, s := range f.places {
		for j < len(other.places) && other.places[j].last < s.first-nearBy {
			j++
		}
		if j < len(other.places) && other.places[j].first <= s.last+nearBy {
			close = append(close, i)
		}
	}
	return close
}

// withoutShared returns both files without the hunks that are the same in both.
func withoutShared(x, y *file) (restX, restY *file) {
	var same marks
	note := func(i, j int) {
		if s, t := x.places[i], y.places[j]; sameChange(s, t) && (s.first == t.first || !x.startsWith(y)) {
			same.add(i, j)
		}
	}
	if x.startsWith(y) {
		eachMeeting(x, y, note)
	} else {
		eachShared(x.far, y.far, note)
	}
	return x.without(same.x), y.without(same.y)
}

func sameFile(x, y *file) finding { return finding{SameFile, x.allRanges(), y.allRanges()} }
